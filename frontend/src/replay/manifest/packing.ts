/* Columns as the server packs them: differences to what is expected from the values before, and nothing
   for a column of zeros. Keep in sync with sessions/models/record/packing.py. */
import type {
  Cause,
  Column,
  EntryColumns,
  ManifestJson,
  SessionEvent,
  StepColumns,
} from './manifest';

type PackedEntries = EntryColumns & { count: number; revisions: number[]; steps: number[] };
type PackedEvents = {
  step: number[];
  revision: number[];
  before: Column;
  after: Column;
  kind: string[];
  basis: SessionEvent['basis'][];
  label: string[]; // from `labeled_from` on
};
export type PackedJson = Omit<ManifestJson, 'entries' | 'steps' | 'events' | 'causes'> & {
  count: number; // of steps that have figures
  entries: PackedEntries;
  later: Later | null;
  labeled_from: number;
  steps: StepColumns;
  events: PackedEvents;
  causes: (Cause | { step: number })[];
};
/** What came after the columns were stored: entries that follow all others at their positions, and the
    ends of those that were the last there. */
type Later = {
  entries: EntryColumns & { position: number[] };
  changed: { position: number[]; edit: number[]; to: number[]; closed: number[] };
};

const sums = (differences: readonly number[]): number[] => {
  let sum = 0;
  return differences.map((one) => (sum += one));
};
const filled = <Value>(values: Value[], count: number): (Value | 0)[] =>
  values.length ? values : new Array<0>(count).fill(0);

function unpackedEntries(packed: PackedEntries): EntryColumns {
  const { count } = packed;
  const column = (name: keyof EntryColumns) => filled(packed[name], count);
  const [flags, closed] = [column('flags'), column('closed')];
  const [from, to, edit] = [column('from').slice(), column('to').slice(), column('edit').slice()];
  const steps = new Map<number, number>();
  const at = sums(packed.steps);
  sums(packed.revisions).forEach((revision, i) => steps.set(revision, at[i]));
  let [born, closing] = [0, 0];
  for (let i = 0; i < count; i++) {
    if (flags[i] & 4) edit[i] += closing;
    from[i] += edit[i] ? steps.get(edit[i])! : born;
    to[i] += steps.get(closed[i])!;
    if (!edit[i]) born = from[i];
    closing = closed[i];
  }
  return {
    from,
    to,
    edit,
    flags,
    closed,
    kind: column('kind'),
    tokens: column('tokens'),
    index: column('index'),
    message: sums(column('message')),
  };
}

function unpackedSteps(packed: StepColumns, count: number): StepColumns {
  const steps = { ...packed };
  for (const name of Object.keys(steps) as (keyof StepColumns)[])
    steps[name] = filled(steps[name]!, count).slice();
  let [at, held] = [0, 0];
  for (let i = 0; i < count; i++) {
    if (steps.at[i] !== null) at = steps.at[i]! += at;
    if (steps.read[i] !== null) steps.read[i]! += held;
    held = (steps.read[i] ?? 0) + (steps.write[i] ?? 0);
    if (steps.prompt[i] !== null) steps.prompt[i]! += (steps.uncached[i] ?? 0) + held;
  }
  return steps;
}

function unpackedEvents(packed: PackedEvents, prompts: Column): SessionEvent[] {
  const [steps, revisions] = [sums(packed.step), sums(packed.revision)];
  const size = (column: Column, i: number, step: number) =>
    column[i] === null ? null : column[i] + (prompts[step - 1] ?? 0);
  return steps.map((step, i) => ({
    step,
    kind: packed.kind[i],
    revision: revisions[i] || null,
    label: packed.label[i],
    before: size(packed.before, i, step - 1),
    after: size(packed.after, i, step),
    basis: packed.basis[i],
    url: null,
  }));
}

/** The manifest, with what came after its columns were stored. */
export function unpacked(packed: PackedJson): ManifestJson {
  const steps = unpackedSteps(packed.steps, packed.count);
  const entries = unpackedEntries(packed.entries);
  if (packed.later) lay(entries, packed.later);
  return {
    ...packed,
    entries,
    steps,
    events: unpackedEvents(packed.events, steps.prompt),
    causes: packed.causes as Cause[],
  };
}

/** Lays what came later over unpacked columns. */
function lay(columns: EntryColumns, { entries, changed }: Later): void {
  const names = Object.keys(columns) as (keyof EntryColumns)[];
  const first: number[] = []; // of each position: its original, which no revision opened
  columns.edit.forEach((edit, i) => edit || first.push(i));
  const known = first.length;
  first.push(columns.edit.length);
  changed.position.forEach((position, n) => {
    let i = first[position];
    while (columns.edit[i] !== changed.edit[n]) i++;
    columns.to[i] = changed.to[n];
    columns.closed[i] = changed.closed[n];
  });
  const places = entries.position.map((position) => first[Math.min(position + 1, known)]);
  for (const name of names) {
    const column: number[] = [];
    let taken = 0;
    places.forEach((place, n) => {
      while (taken < place) column.push(columns[name][taken++]);
      column.push(entries[name][n]);
    });
    columns[name] = column.concat(columns[name].slice(taken));
  }
}
