/* Lists: <table data-list>, or what such a table will come into, whose rows hold an <a data-open>; j and k
   move, o and Enter open. */
import { follow } from './keyboard';
import { addShortcuts } from './registry';

const rows = () => [
  ...document.querySelectorAll<HTMLElement>('[data-list] tbody tr:not([hidden])'),
];
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
  addShortcuts(
    {
      section: 'List',
      keys: ['j', 'ArrowDown'],
      does: 'Next row',
      run: () => move(1),
      repeats: true,
    },
    {
      section: 'List',
      keys: ['k', 'ArrowUp'],
      does: 'Previous row',
      run: () => move(-1),
      repeats: true,
    },
    {
      section: 'List',
      keys: ['o'],
      does: 'Open the row',
      run: follow('[data-list] tr.here [data-open]'),
    },
  );
}
