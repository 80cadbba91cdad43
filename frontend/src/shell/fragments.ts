/* Server pages that follow a topic: <section id="job" data-topic="job:7"> is drawn anew from the same
   address when the topic moves. With data-offer it only offers to, so that no row moves under the pointer. */
import { watchTopic } from './live';

let wanted = false;
let fetching = false;

async function redraw(section: HTMLElement): Promise<void> {
  if (fetching) {
    wanted = true;
    return;
  }
  fetching = true;
  try {
    const answer = await fetch(location.href, { headers: { accept: 'text/html' } });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const fresh = page.getElementById(section.id);
    if (page.title) document.title = page.title;
    if (!fresh || fresh.isEqualNode(section)) return;
    if (updateRows(section, fresh) || updateParts(section, fresh)) return;
    const focused = section.contains(document.activeElement) ? document.activeElement?.id : '';
    const typed = typedIn(section);
    section.replaceChildren(...fresh.childNodes);
    for (const [id, text] of typed) {
      const field = document.getElementById(id) as Field | null;
      if (field) field.value = text;
    }
    if (fresh.dataset.topic === undefined) delete section.dataset.topic;
    if (focused) document.getElementById(focused)?.focus();
  } finally {
    const rest = Number(section.dataset.atMostEvery ?? 0);
    setTimeout(() => {
      fetching = false;
      if (!wanted) return;
      wanted = false;
      setTimeout(() => void redraw(section), rest ? 0 : 500);
    }, rest);
  }
}

type Field = HTMLInputElement | HTMLTextAreaElement;

/** What somebody wrote meanwhile into fields that have an id: it must not go with the old page. */
const typedIn = (section: HTMLElement): [id: string, text: string][] =>
  [...section.querySelectorAll<Field>('input[type="text"][id], textarea[id]')].filter((field) => field.value !== field.defaultValue).map((field) => [field.id, field.value]);

const rowsOf = (section: HTMLElement) => [...section.querySelectorAll<HTMLTableRowElement>('tr[data-key]')];

/** A table of rows with keys is brought up to date cell by cell. Its order changes only while nobody points
    at it or is in it: no row moves away under a hand. */
function updateRows(section: HTMLElement, fresh: HTMLElement): boolean {
  const body = rowsOf(section)[0]?.parentElement;
  const wanted = rowsOf(fresh);
  if (!body || !wanted.length) return false;
  const held = body.matches(':hover') || body.contains(document.activeElement);
  const old = new Map(rowsOf(section).map((row) => [row.dataset.key, row]));
  for (const row of wanted) {
    const mine = old.get(row.dataset.key);
    old.delete(row.dataset.key);
    if (!mine) body.append(row);
    else {
      [...row.cells].forEach((cell, i) => {
        const stands = mine.cells[i];
        if (!stands?.isEqualNode(cell) && !stands?.contains(document.activeElement)) stands?.replaceWith(cell);
      });
      if (!held) body.append(mine);
    }
  }
  for (const row of old.values()) row.remove();
  for (const part of section.querySelectorAll('[data-part]')) {
    const news = fresh.querySelector(`[data-part="${(part as HTMLElement).dataset.part}"]`);
    if (news && !news.isEqualNode(part)) part.replaceWith(news);
  }
  return true;
}

const partsOf = (section: HTMLElement) => [...section.querySelectorAll<HTMLElement>('[data-part]')];

/** A page of parts is brought up to date part by part: what is open stays open, and a part with data-same
    is left alone while that is the same, so that no chart is drawn anew for nothing. */
function updateParts(section: HTMLElement, fresh: HTMLElement): boolean {
  const mine = partsOf(section);
  const news = partsOf(fresh);
  const names = (parts: HTMLElement[]) => parts.map((part) => part.dataset.part).join();
  if (!mine.length || names(mine) !== names(news)) return false;
  mine.forEach((part, i) => {
    const now = news[i];
    for (const open of part.querySelectorAll('details[open][id]')) now.querySelector(`#${open.id}`)?.setAttribute('open', '');
    if (part.dataset.same ? part.dataset.same === now.dataset.same : part.isEqualNode(now)) return;
    const active = document.activeElement;
    if (active instanceof HTMLInputElement && part.contains(active)) return; // somebody is writing there
    const place = part.contains(active) ? [...part.querySelectorAll('a, button, summary, [tabindex]')].indexOf(active!) : -1;
    part.replaceWith(now);
    if (place >= 0) now.querySelectorAll<HTMLElement>('a, button, summary, [tabindex]')[place]?.focus({ preventScroll: true });
  });
  return true;
}

function offer(section: HTMLElement): void {
  const button = document.querySelector<HTMLElement>(`[data-refreshes="${section.id}"]`);
  if (!button) return;
  button.hidden = false;
  button.onclick = () => {
    button.hidden = true;
    void redraw(section);
  };
}

for (const section of document.querySelectorAll<HTMLElement>('[data-topic][id]')) {
  let last = Number(section.dataset.version ?? -1);
  watchTopic(section.dataset.topic!, (version) => {
    if (section.dataset.topic === undefined || (version !== null && version === last)) return;
    if (version !== null) last = version;
    if ('offer' in section.dataset && version !== null) offer(section);
    else if (!('offer' in section.dataset)) void redraw(section);
  });
}

/** <section id="queue" data-every="15">: what no topic tells of is asked for every 15 seconds, while it is looked at. */
for (const section of document.querySelectorAll<HTMLElement>('[data-every][id]')) {
  const look = () => document.visibilityState === 'visible' && void redraw(section);
  setInterval(look, Number(section.dataset.every) * 1000);
  document.addEventListener('visibilitychange', look);
}
