/* Sections that htmx fetches by the clock, on being opened, or once they are near. htmx comes with the first of
   these that happens: a page that is read at once and left stays light. */

const load = () => import('./fragments');

/** Seconds in "every 15s"; null without a clock. */
export const secondsOf = (trigger: string): number | null => {
  const found = /every (\d+)s/.exec(trigger);
  return found ? Number(found[1]) : null;
};

/** By the clock: the first time is ours, and htmx goes on from there. */
function byClock(section: HTMLElement, seconds: number): void {
  const tick = () => {
    if (document.hidden) return void setTimeout(tick, seconds * 1000);
    void load().then(({ refresh }) => section.isConnected && refresh(section));
  };
  setTimeout(tick, seconds * 1000);
}

/** On opening: htmx listens once it is here, and gets the event that it missed. */
function onOpening(details: HTMLElement): void {
  details.addEventListener(
    'toggle',
    () => void load().then(() => details.dispatchEvent(new Event('toggle'))),
    { once: true },
  );
}

const near = new IntersectionObserver(
  (entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    near.disconnect();
    void load();
  },
  { rootMargin: '400px' },
);

for (const section of document.querySelectorAll<HTMLElement>('[hx-trigger]')) {
  const trigger = section.getAttribute('hx-trigger')!;
  const seconds = secondsOf(trigger);
  if (seconds !== null) byClock(section, seconds);
  else if (trigger.startsWith('toggle')) onOpening(section);
  else if (trigger === 'load') near.observe(section);
}
