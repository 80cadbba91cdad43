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
