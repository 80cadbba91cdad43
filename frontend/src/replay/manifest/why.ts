/* The address of “Why did it forget?” for a selected text. */

const SHORTEST = 3;
const LONGEST = 200;

/** The address that answers for a text; null if it is no text to ask for. */
export function addressFor(page: string, selected: string, run: string | null): string | null {
  const text = selected.trim();
  if (text.length < SHORTEST || text.length > LONGEST || text.includes('\n')) return null;
  const query = new URLSearchParams({ text });
  if (run) query.set('run', run);
  return `${page}?${query}`;
}
