/* One registry of keys with sections; the sheet behind "?" is made from it, so it cannot be wrong. */
import { isForPage, isSend, nameOf } from './guards';
import { showSheet } from './sheet';

export type Shortcut = {
  section: string;
  keys: string[]; // as guards.nameOf() calls them; "g s" is a sequence, "Ctrl+Enter" the one chord
  does: string;
  run(event: KeyboardEvent): void;
  repeats?: boolean; // may a held key fire again?
};

const registry: Shortcut[] = [];

/** Adds shortcuts until the returned function is called. */
export function shortcuts(...added: Shortcut[]): () => void {
  registry.push(...added);
  return () => {
    for (const shortcut of added) registry.splice(registry.indexOf(shortcut), 1);
  };
}

export const all = (): readonly Shortcut[] => registry;

const keyboardOff = () => document.documentElement.dataset.keys === 'off';
let begun = '';
let begunAt = 0;

document.addEventListener('keydown', (event) => {
  const open = document.querySelector('dialog[open],[popover]:popover-open') !== null;
  const sends = isSend(event as never) && !open && registry.findLast((shortcut) => shortcut.keys.includes('Ctrl+Enter'));
  if (sends) {
    event.preventDefault();
    if (!event.repeat) sends.run(event);
    return;
  }
  if (!isForPage(event as never, open) || keyboardOff()) return;
  const name = nameOf(event);
  const sequence = begun && event.timeStamp - begunAt < 1200 ? `${begun} ${name}` : '';
  begun = '';
  const found =
    registry.findLast((shortcut) => sequence && shortcut.keys.includes(sequence)) ??
    registry.findLast((shortcut) => shortcut.keys.includes(name));
  if (found) {
    event.preventDefault();
    if (!event.repeat || found.repeats) found.run(event);
  } else if (registry.some((shortcut) => shortcut.keys.some((keys) => keys.startsWith(`${name} `)))) {
    begun = name;
    begunAt = event.timeStamp;
  }
});

const follow = (selector: string) => () => {
  const link = document.querySelector<HTMLAnchorElement>(selector);
  if (link) location.assign(link.href);
};

/** Links say their own key: <a data-keys="g s" data-does="Go to Sessions">. */
for (const link of document.body.querySelectorAll<HTMLElement>('[data-keys]')) {
  shortcuts({
    section: link.dataset.section ?? 'Everywhere',
    keys: [link.dataset.keys!],
    does: link.dataset.does ?? link.textContent!.trim(),
    run: () => link.click(),
  });
}

shortcuts(
  {
    section: 'Everywhere',
    keys: ['/'],
    does: 'Focus the filter of this page',
    run: () => document.querySelector<HTMLElement>('[data-filter]')?.focus(),
  },
  { section: 'Everywhere', keys: ['?'], does: 'This sheet', run: () => showSheet(registry, keyboardOff()) },
  { section: 'Everywhere', keys: ['u'], does: 'Up one level', run: follow('[data-up]') },
);

for (const button of document.querySelectorAll<HTMLElement>('[data-shortcuts]')) {
  button.hidden = false;
  button.addEventListener('click', () => showSheet(registry, keyboardOff()));
}

// Esc leaves a filter without clearing it.
document.addEventListener('keydown', (event) => {
  const target = event.target as HTMLElement;
  if (event.key === 'Escape' && !event.defaultPrevented && target.matches?.('[data-filter]')) target.blur();
});

/* Lists: <table data-list>, or what such a table will come into, whose rows hold an <a data-open>; j and k move, o and Enter open. */
const rows = () => [...document.querySelectorAll<HTMLElement>('[data-list] tbody tr:not([hidden])')];
function move(by: number): void {
  const all = rows();
  const now = all.findIndex((row) => row.classList.contains('here'));
  const next = all[Math.max(0, Math.min(all.length - 1, now < 0 ? 0 : now + by))];
  if (!next) return;
  all[now]?.classList.remove('here');
  next.classList.add('here');
  next.querySelector<HTMLElement>('[data-open]')?.focus();
  next.scrollIntoView({ block: 'nearest' });
}
if (document.querySelector('[data-list]')) {
  shortcuts(
    { section: 'List', keys: ['j', 'ArrowDown'], does: 'Next row', run: () => move(1), repeats: true },
    { section: 'List', keys: ['k', 'ArrowUp'], does: 'Previous row', run: () => move(-1), repeats: true },
    { section: 'List', keys: ['o'], does: 'Open the row', run: follow('[data-list] tr.here [data-open]') },
  );
}
