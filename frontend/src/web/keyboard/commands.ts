/* What the command palette offers for what was typed. */
import type { Shortcut } from './registry';

export type Command = { does: string; keys: string; run(): void };

const MOST = 12;

/** What the search page takes for a step: keep in sync with sessions/views/search/step_asked.py. */
const STEP = /(?:^|\s)(?:step|#)\s?(\d{1,7})(?=\s|$)/i;

/** What the search says it does with these words. */
function searchFor(text: string): string {
  const step = Number(STEP.exec(text)?.[1] ?? 0);
  if (!step) return `Search every session for “${text}”`;
  return `Step ${step} of the longest sessions, and search for “${text}”`;
}

/** Shortcuts whose words hold every typed word, those of this page first, and policies; then the
search. */
export function commandsFor(
  registry: readonly Shortcut[],
  typed: string,
  search: ((words: string) => void) | null,
  policies: readonly Command[] = [],
): Command[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const [own, others] = [true, false].map((isOwn) =>
    registry.filter(({ section }) => (section !== 'Everywhere') === isOwn),
  );
  const shortcuts = [...own!, ...others!].map((one) => ({
    does: one.does,
    keys: one.keys[0] ?? '',
    run: () => one.run(new KeyboardEvent('keydown')),
  }));
  const found = [...shortcuts, ...(words.length ? policies : [])].filter(({ does }) =>
    words.every((word) => does.toLowerCase().includes(word)),
  );
  const text = typed.trim();
  const offers: Command[] =
    text && search ? [{ does: searchFor(text), keys: '', run: () => search(text) }] : [];
  return [...found.slice(0, MOST), ...offers];
}
