/* What is new in a session since the page last looked, merged into the columns that it holds: the work
   grows with what is new, and what did not change is not touched. */
import { account, sum, type Composition } from './composition';
import {
  decodeEntries,
  everOpen,
  grown,
  setAside,
  type Entries,
  type EntryColumns,
  type Manifest,
  type ManifestJson,
  type StepColumns,
} from './manifest';

export type DeltaJson = Omit<ManifestJson, 'entries' | 'kinds'> & {
  delta: true;
  since: string;
  next: string;
  entries: EntryColumns & { at: number[] }; // places in context order as it is after the change
  changed: { at: number[]; to: number[]; closed: number[] };
  from_step: number; // steps, causes and events from here on take the place of the page's
};
type Merged = { manifest: Manifest; inserted: number[] };

export const isDelta = (answer: object): answer is DeltaJson =>
  'delta' in answer && answer.delta === true;

const columnNames = [
  'from',
  'to',
  'kind',
  'shown',
  'message',
  'index',
  'flags',
  'edit',
  'closed',
] as const;

/** Puts values into a column of `count` at their ascending final places; every old value moves at most once. */
function insert(
  column: Int32Array | Uint8Array,
  count: number,
  places: readonly number[],
  values: ArrayLike<number>,
): void {
  let end = count;
  for (let n = places.length - 1; n >= 0; n--) {
    const from = places[n] - n; // the first old value that stands behind this new one
    if (from < end) column.copyWithin(places[n] + 1, from, end);
    column[places[n]] = values[n];
    end = from;
  }
}

function insertEntries(entries: Entries, fresh: Entries, places: readonly number[]): void {
  const count = entries.count + places.length;
  const room = count > entries.from.length ? Math.max(count, entries.from.length * 2) : 0;
  for (const name of columnNames) {
    const column = (entries[name] = grown(entries[name] as Int32Array, room) as never);
    insert(column, entries.count, places, fresh[name]);
  }
  entries.count = count;
}

/** Where an entry stands after others came in before it. */
export function shifted(entry: number, inserted: readonly number[]): number {
  let at = entry;
  for (const place of inserted) if (place <= at) at++;
  return at;
}

/** Whether the delta can be laid over what the page has: it is of the same counting, and leaves no hole. */
function fits(manifest: Manifest, delta: DeltaJson): boolean {
  const places = delta.entries.at;
  const count = manifest.entries.count + places.length;
  const ascending = places.every((place, n) => place < count && (n === 0 || place > places[n - 1]));
  const known = manifest.steps.at.length;
  return (
    delta.since === manifest.next &&
    ascending &&
    delta.session.ratio === manifest.session.ratio &&
    delta.from_step <= known + 1 &&
    delta.changed.at.every((i) => i < count)
  );
}

/** The manifest with the delta in it, whose arrays are the old one's, grown; null where the whole is needed. */
export function merge(
  manifest: Manifest,
  composition: Composition,
  delta: DeltaJson,
): Merged | null {
  if (!fits(manifest, delta)) return null;
  manifest.next = undefined; // its arrays go on in the new one: nothing is laid over this one again
  const { entries } = manifest;
  const fresh = decodeEntries(delta.entries, manifest.kinds, delta.session.ratio);
  const inserted = delta.entries.at;
  insertEntries(entries, fresh, inserted);
  let first = manifest.last;
  for (const i of inserted) {
    first = Math.min(first, entries.from[i]);
    account(composition, entries, i, 1);
  }
  delta.changed.at.forEach((i, n) => {
    account(composition, entries, i, -1);
    const to = delta.changed.to[n] || everOpen;
    first = Math.min(first, to, entries.to[i]);
    entries.to[i] = to;
    entries.closed[i] = delta.changed.closed[n];
    account(composition, entries, i, 1);
  });
  const last = delta.session.steps + 1;
  sum(composition, first, last);
  replaceSteps(manifest.steps, delta.steps, delta.from_step);
  setAside(manifest, delta.from_step);
  const earlier = <Thing extends { step: number }>(things: readonly Thing[]) =>
    things.filter((thing) => thing.step < delta.from_step);
  const { session, run, runs, next, models, lines, pins } = delta;
  return {
    manifest: {
      ...manifest,
      session,
      run,
      runs,
      next,
      models,
      lines,
      pins,
      last,
      causes: [...earlier(manifest.causes), ...delta.causes],
      events: [...earlier(manifest.events), ...delta.events],
    },
    inserted,
  };
}

function replaceSteps(steps: StepColumns, fresh: StepColumns, from: number): void {
  for (const name of Object.keys(fresh) as (keyof StepColumns)[]) {
    const column = (steps[name] ??= []);
    column.splice(from - 1, column.length, ...fresh[name]!);
  }
}
