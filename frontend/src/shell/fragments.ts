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
    if (updateRows(section, fresh)) return;
    const focused = section.contains(document.activeElement) ? document.activeElement?.id : '';
    section.replaceChildren(...fresh.childNodes);
    if (fresh.dataset.topic === undefined) delete section.dataset.topic;
    if (focused) document.getElementById(focused)?.focus();
  } finally {
    fetching = false;
    if (wanted) {
      wanted = false;
      setTimeout(() => void redraw(section), 500);
    }
  }
}

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
