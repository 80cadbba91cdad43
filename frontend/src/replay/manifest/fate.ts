/* Where a block is at a step, for the transcript: all that was said so far, and what became of it. */
import { rowsAt, stands } from './composition';
import { Flag, type Entries } from './manifest';
import { kindNames } from '../../web/kinds';

const summary = kindNames.indexOf('summary');

/** `offloaded`: a stub stands in its place. `summarized`: a summary came when it left. `lost`: neither. */
export type Fate = {
  is: 'in context' | 'reply' | 'offloaded' | 'summarized' | 'lost';
  step: number; // the first without it
  revision: number; // that removed it, 0 for none
  stub: number; // the entry that stands in its place, or -1
};

const isStub = (entries: Entries, i: number): boolean =>
  (entries.flags[i] & Flag.replacement) > 0 && entries.kind[i] !== summary;

/** Originals and summaries up to a step, and the reply to it, in context order. */
export const said = (entries: Entries, step: number, keep?: (i: number) => boolean): Int32Array =>
  rowsAt(entries, step + 1, true, (i) => !isStub(entries, i) && (keep?.(i) ?? true));

/** The steps at which summaries came: what left the context there is in them. */
export function summarySteps(entries: Entries): ReadonlySet<number> {
  const steps = new Set<number>();
  for (let i = 0; i < entries.count; i++)
    if (entries.kind[i] === summary) steps.add(entries.from[i]);
  return steps;
}

export function fateOf(
  entries: Entries,
  i: number,
  step: number,
  summaries: ReadonlySet<number>,
): Fate {
  const fate: Fate = {
    is: 'in context',
    step: entries.to[i],
    revision: entries.closed[i],
    stub: -1,
  };
  if (stands(entries, i, step)) return fate;
  if (entries.from[i] > step) return { ...fate, is: 'reply' };
  let left = entries.to[i];
  // Replacements follow the original at its place, oldest first.
  for (let j = i + 1; j < entries.count && isSamePlace(entries, i, j); j++) {
    if (stands(entries, j, step)) return { ...fate, is: 'offloaded', stub: j };
    if (entries.from[j] <= step) left = Math.max(left, entries.to[j]);
  }
  return { ...fate, is: summaries.has(left) ? 'summarized' : 'lost' };
}

const isSamePlace = (entries: Entries, i: number, j: number): boolean =>
  isStub(entries, j) &&
  entries.message[j] === entries.message[i] &&
  entries.index[j] === entries.index[i];
