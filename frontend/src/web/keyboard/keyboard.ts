/* Which key does what on this page, and the keys that every page has. */
import { isForPage, isSearch, isSend, nameOf } from './guards';
import { addShortcuts, registry } from './registry';
import { showPalette } from './palette';

const keyboardOff = () => document.documentElement.dataset.keys === 'off';
let begun = '';
let begunAt = 0;

document.addEventListener('keydown', (event) => {
  if (isSearch(event as never) && !keyboardOff()) {
    event.preventDefault();
    if (!document.querySelector('dialog[open]')) showPalette(searchFor());
    return;
  }
  const open = document.querySelector('dialog[open],[popover]:popover-open') !== null;
  const sends =
    isSend(event as never) &&
    !open &&
    registry.findLast((shortcut) => shortcut.keys.includes('Ctrl+Enter'));
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
  } else if (
    registry.some((shortcut) => shortcut.keys.some((keys) => keys.startsWith(`${name} `)))
  ) {
    begun = name;
    begunAt = event.timeStamp;
  }
});

/** Loaded when it is asked for: no page needs it to begin with. */
const showSheet = () =>
  void import('./sheet').then((sheet) => sheet.showSheet(registry, keyboardOff()));

/** Goes where the link leads that the selector finds. */
export const follow = (selector: string) => () => {
  const link = document.querySelector<HTMLAnchorElement>(selector);
  if (link) location.assign(link.href);
};

const toSearch = follow('[data-search]');

/** Goes to the search with some words; null for pages without it. */
function searchFor(): ((words: string) => void) | null {
  const link = document.querySelector<HTMLAnchorElement>('[data-search]');
  return link && ((words) => location.assign(`${link.href}?${new URLSearchParams({ q: words })}`));
}

/** Links say their own key: <a data-keys="g s" data-does="Go to Sessions">. */
for (const link of document.body.querySelectorAll<HTMLElement>('[data-keys]')) {
  addShortcuts({
    section: link.dataset.section ?? 'Everywhere',
    keys: [link.dataset.keys!],
    does: link.dataset.does ?? link.textContent!.trim(),
    about: link.dataset.about ?? '',
    run: () => link.click(),
  });
}

addShortcuts(
  {
    section: 'Everywhere',
    keys: ['/'],
    does: 'Focus the filter of this page, or search',
    run: () => {
      const filter = document.querySelector<HTMLElement>('[data-filter]');
      if (filter) filter.focus();
      else toSearch();
    },
  },
  {
    section: 'Everywhere',
    keys: ['Ctrl+k'],
    does: 'Commands, and search in everything',
    run: () => showPalette(searchFor()),
  },
  {
    section: 'Everywhere',
    keys: ['?'],
    does: 'This sheet',
    run: showSheet,
  },
  { section: 'Everywhere', keys: ['u'], does: 'Up one level', run: follow('[data-up]') },
);

for (const button of document.querySelectorAll<HTMLElement>('[data-shortcuts]')) {
  button.hidden = false;
  button.addEventListener('click', showSheet);
}

// Esc leaves a filter without clearing it.
document.addEventListener('keydown', (event) => {
  const target = event.target as HTMLElement;
  if (event.key === 'Escape' && !event.defaultPrevented && target.matches?.('[data-filter]'))
    target.blur();
});
