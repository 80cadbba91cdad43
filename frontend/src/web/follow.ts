/* Sections that follow a topic. htmx, three quarters of the script, comes with the first change: a page on
   which nothing happens stays light. */
import { watchTopic } from './socket';

const fragments = () => import('./fragments');

/** Asks when the topic moves on: at most every data-at-most-every ms, and once more after the last hint. Where
    a button offers to ([data-offer]), it appears instead, so that no row moves under the pointer. */
function follow(section: HTMLElement, topic: string): void {
  const rest = Number(section.dataset.atMostEvery ?? 500);
  let known: number | undefined;
  let next = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const ask = () => {
    timer = undefined;
    next = Date.now() + rest;
    void fragments().then(({ refresh }) => refresh(section));
  };
  const stop = watchTopic(topic, (version) => {
    if (section.dataset.topic !== topic) return stop(); // nothing more can come
    // A hint may arrive after the answer that shows what it announces.
    const shown = Number(section.dataset.version ?? -1);
    if (version !== null && (version === known || version === shown)) return;
    known = version ?? known;
    const offer = section.querySelector<HTMLElement>('[data-offer]');
    if (!offer) timer ??= setTimeout(ask, Math.max(0, next - Date.now()));
    else if (version !== null) void fragments().then(() => (offer.hidden = false));
  });
}

for (const section of document.querySelectorAll<HTMLElement>('[data-topic]'))
  follow(section, section.dataset.topic!);
