/* Which rows of a step were read from the cache. The provider reports three sums, not rows: laid over
   the rows in order (read first, then written, then uncached) they give an estimate per row. */
import { stands } from './composition';
import type { Entries } from './manifest';

export const Cached = { unknown: 0, read: 1, write: 2, uncached: 3 } as const;
type Usage = {
  prompt: number | null;
  uncached: number | null;
  read: number | null;
  write: number | null;
};

/** A state per row; `divergent` is the first row that was not read, where the prefix ended. */
export function cacheStates(
  entries: Entries,
  rows: Int32Array,
  step: number,
  hidden: number,
  visible: number,
  usage: Usage,
): { states: Uint8Array; divergent: number } {
  const states = new Uint8Array(rows.length);
  const sum = (usage.read ?? 0) + (usage.write ?? 0) + (usage.uncached ?? 0);
  if (usage.read === null || sum === 0) return { states, divergent: -1 };
  // Our counts and the provider's differ by a little: compare shares of the prompt, not tokens.
  const scale = (hidden + visible) / sum;
  const readEnd = usage.read * scale;
  const writeEnd = readEnd + (usage.write ?? 0) * scale;
  let passed = hidden;
  let divergent = -1;
  for (let row = 0; row < rows.length; row++) {
    const i = rows[row];
    if (!stands(entries, i, step)) continue; // a ghost costs nothing here
    const middle = passed + entries.shown[i] / 2;
    passed += entries.shown[i];
    states[row] =
      middle <= readEnd ? Cached.read : middle <= writeEnd ? Cached.write : Cached.uncached;
    if (divergent < 0 && states[row] !== Cached.read) divergent = row;
  }
  return { states, divergent };
}
