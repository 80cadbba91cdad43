/* What stands at a step, and how many tokens of each kind. */
import type { Entries } from './manifest';
import { kindNames } from './manifest';

export const kindCount = kindNames.length;

export type Composition = {
  steps: number; // counted from 1, the last is "next"
  byKind: Float64Array; // [step * kindCount + kind]
  total: Float64Array; // [step]
  blocks: Int32Array; // [step]
};

/** Tokens per kind for every step at once: each entry adds where it opens and subtracts where it closes. */
export function compose(entries: Entries, last: number): Composition {
  const width = last + 2;
  const byKind = new Float64Array(width * kindCount);
  const blocks = new Int32Array(width);
  for (let i = 0; i < entries.count; i++) {
    const from = Math.max(1, entries.from[i]);
    const to = Math.min(entries.to[i], last + 1);
    if (from >= to) continue;
    byKind[from * kindCount + entries.kind[i]] += entries.shown[i];
    byKind[to * kindCount + entries.kind[i]] -= entries.shown[i];
    blocks[from]++;
    blocks[to]--;
  }
  const total = new Float64Array(width);
  for (let step = 1; step <= last; step++) {
    blocks[step] += blocks[step - 1];
    for (let kind = 0; kind < kindCount; kind++) {
      const at = step * kindCount + kind;
      byKind[at] += byKind[at - kindCount];
      total[step] += byKind[at];
    }
  }
  return { steps: last, byKind, total, blocks };
}

export const kindTokens = (composition: Composition, step: number): Float64Array =>
  composition.byKind.subarray(step * kindCount, (step + 1) * kindCount);

export const stands = (entries: Entries, i: number, step: number): boolean => entries.from[i] <= step && step < entries.to[i];

/** Indexes of the rows at a step, in context order; with ghosts also those that were removed before it. */
export function rowsAt(entries: Entries, step: number, ghosts = false, keep?: (i: number) => boolean): Int32Array {
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
