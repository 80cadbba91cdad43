/* What stands at a step, and how many tokens of each kind. */
import type { Entries } from './manifest';
import { everOpen, grown } from './manifest';
import { kindNames } from '../../web/kinds';

export const kindCount = kindNames.length;

export type Composition = {
  steps: number; // counted from 1, the last is "next"
  byKind: Float64Array; // [step * kindCount + kind]
  total: Float64Array; // [step]
  blocks: Int32Array; // [step]
  /** What opens less what closes at a step, for entries wherever they end: sums are drawn from these. */
  change: Float64Array; // [step * kindCount + kind]
  changeOfBlocks: Int32Array; // [step]
};

/** Tokens per kind for every step at once: each entry adds where it opens and subtracts where it closes. */
export function compose(entries: Entries, last: number): Composition {
  const made: Composition = {
    steps: last,
    byKind: new Float64Array(0),
    total: new Float64Array(0),
    blocks: new Int32Array(0),
    change: new Float64Array(0),
    changeOfBlocks: new Int32Array(0),
  };
  reserve(made, last);
  for (let i = 0; i < entries.count; i++) account(made, entries, i, 1);
  sum(made, 1, last);
  return made;
}

/** Room for that many steps; twice as much as asked for when it must grow. */
function reserve(composition: Composition, steps: number): void {
  const width = steps + 2;
  if (composition.total.length >= width) return;
  const wide = Math.max(width, composition.total.length * 2);
  composition.byKind = grown(composition.byKind, wide * kindCount);
  composition.change = grown(composition.change, wide * kindCount);
  composition.total = grown(composition.total, wide);
  composition.blocks = grown(composition.blocks, wide);
  composition.changeOfBlocks = grown(composition.changeOfBlocks, wide);
}

/** Counts an entry in (1) or out again (-1). */
export function account(composition: Composition, entries: Entries, i: number, sign: 1 | -1): void {
  const from = Math.max(1, entries.from[i]);
  const to = entries.to[i];
  if (from >= to) return;
  const [kind, tokens] = [entries.kind[i], entries.shown[i] * sign];
  reserve(composition, to === everOpen ? from : to);
  composition.change[from * kindCount + kind] += tokens;
  composition.changeOfBlocks[from] += sign;
  if (to === everOpen) return;
  composition.change[to * kindCount + kind] -= tokens;
  composition.changeOfBlocks[to] -= sign;
}

/** Sums from step `from` on; those before it must be right. */
export function sum(composition: Composition, from: number, last: number): void {
  reserve(composition, last);
  const { byKind, total, blocks, change, changeOfBlocks } = composition;
  composition.steps = last;
  for (let step = Math.max(1, from); step <= last; step++) {
    blocks[step] = blocks[step - 1] + changeOfBlocks[step];
    total[step] = 0;
    for (let kind = 0; kind < kindCount; kind++) {
      const at = step * kindCount + kind;
      byKind[at] = byKind[at - kindCount] + change[at];
      total[step] += byKind[at];
    }
  }
}

export const kindTokens = (composition: Composition, step: number): Float64Array =>
  composition.byKind.subarray(step * kindCount, (step + 1) * kindCount);

export const stands = (entries: Entries, i: number, step: number): boolean =>
  entries.from[i] <= step && step < entries.to[i];

/** Indexes of the rows at a step, in context order; with ghosts also those that were removed before it. */
export function rowsAt(
  entries: Entries,
  step: number,
  ghosts = false,
  keep?: (i: number) => boolean,
): Int32Array {
  const rows = new Int32Array(entries.count);
  let count = 0;
  for (let i = 0; i < entries.count; i++) {
    if (entries.from[i] > step || (!ghosts && step >= entries.to[i])) continue;
    if (keep && !keep(i)) continue;
    rows[count++] = i;
  }
  return rows.subarray(0, count);
}

/** Where an entry is in a sorted list of rows, or -1. */
export function findRow(rows: Int32Array, entry: number): number {
  let low = 0;
  let high = rows.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (rows[middle] === entry) return middle;
    if (rows[middle] < entry) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}
