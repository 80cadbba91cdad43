/* What the command palette offers for what was typed. */
import type { Shortcut } from './registry';

export type Command = { does: string; keys: string; run(): void };

const MOST = 12;

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
    text && search
      ? [{ does: `Search every session for “${text}”`, keys: '', run: () => search(text) }]
      : [];
  return [...found.slice(0, MOST), ...offers];
}
