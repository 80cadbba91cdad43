/* The manifest as the server sends it, and as the page keeps it: typed arrays over entries and steps. */

import { kindNames } from '../../web/kinds';

export const Flag = {
  error: 1,
  pinned: 2,
  replacement: 4,
  toolUse: 8,
  toolResult: 16,
  late: 32,
  image: 64,
} as const;
export const Basis = { measured: 0, estimated: 1, simulated: 2 } as const;

type Origin = 'recorded' | 'managed' | 'simulated';
type RunState = 'ready' | 'missing' | 'running';

export type SessionHead = {
  id: string;
  title: string;
  agent: string;
  model: string;
  ratio: number;
  window: number;
  window_assumed: boolean; // assumed where the model's window is unknown
  basis: 'exact' | 'calibrated' | 'estimated';
  steps: number;
  hidden: number;
  parent: { id: string; title: string; step: number } | null;
  children: Child[];
  version: number;
  live: boolean;
  used?: number | null;
  budget?: { counted: number };
  outcome?: string;
  policy?: string | null;
  policy_from?: 'request' | 'rollout' | 'team' | 'default' | null;
  cost_at_least?: boolean; // the log lacks a part of it
  handed_out?: boolean; // an agent was given a managed context
};
export type Child = {
  id: string;
  title: string;
  step: number; // of the parent, that started it
  steps: number;
  tokens_peak: number;
  ended: number | null; // ms
  cost_microusd: number | null;
  cost_at_least?: boolean; // the log lacks a part of it
};
export type Run = {
  id: string;
  origin: Origin;
  label: string;
  policy: string | null;
  summary: Summary | Record<string, never> | null;
  head?: number;
  recites?: boolean;
  recited_next?: number;
};
/** What a simulation comes to; a recorded run has none. Shares of needs sum to 1. */
export type Summary = {
  tokens_sent: number;
  tokens_sent_recorded: number;
  tokens_sent_reported: number;
  tokens_sent_measured?: boolean;
  peak_tokens: number;
  cost_microusd: number | null;
  cost_recorded_microusd: number | null;
  cache_read_share: number | null;
  needs: number;
  in_context: number;
  named: number;
  retrievable: number;
  lost: number;
  revisions: number;
  refusals: number;
  window_assumed: boolean;
};
export type RunChoice = {
  id: string;
  origin: Origin;
  label: string;
  policy?: string | null; // with its version
  state: RunState;
  job: string | null;
  revisions?: number;
};
export type Cause = {
  step: number;
  kind: string;
  title: string;
  sentence?: string; // not in cards that an earlier release made
  avoidable?: boolean;
  detail: string;
  tokens: number | null;
  cost_microusd: number | null;
  advice: string;
};
export type SessionEvent = {
  step: number;
  kind: string; // of `MarkKind`, unless the server is newer than the page
  revision: number | null;
  label: string;
  before: number | null;
  after: number | null;
  url: string | null;
  basis?: 'measured' | 'estimated' | 'simulated' | null;
};
export type Column = (number | null)[];
export type EntryColumns = Record<
  'from' | 'to' | 'kind' | 'tokens' | 'message' | 'index' | 'flags' | 'edit' | 'closed',
  number[]
>;
export type StepColumns = Record<
  | 'at'
  | 'prompt'
  | 'uncached'
  | 'read'
  | 'write'
  | 'output'
  | 'cost'
  | 'basis'
  | 'turn'
  | 'cause'
  | 'model',
  Column
> & {
  managed?: Column;
  recited?: Column;
  beside?: Column; // prompt tokens of the response's other requests
  beside_read?: Column; // those of them read from the cache
};

export type ManifestJson = {
  v: number;
  session: SessionHead;
  run: Run;
  runs: RunChoice[];
  lines: { trigger: number | null };
  entries: EntryColumns;
  kinds: string[];
  steps: StepColumns;
  causes: Cause[];
  models: string[];
  events: SessionEvent[];
  next?: string; // what to ask the changes from then on by
  pins?: number[]; // messages
  labeled_from?: number; // labels of earlier events and cards of causes are yet to be fetched
};
/** Columns may have room beyond `count`. */
export type Entries = {
  count: number;
  from: Int32Array;
  to: Int32Array;
  kind: Uint8Array;
  shown: Int32Array;
  message: Int32Array;
  index: Int32Array;
  flags: Uint8Array;
  edit: Int32Array;
  closed: Int32Array;
};
export type Manifest = Omit<ManifestJson, 'entries'> & { entries: Entries; last: number };

/** What a policy did to the session, if a policy did. */
export const summaryOf = (run: Run): Summary | null =>
  run.origin === 'simulated' && run.summary && 'needs' in run.summary
    ? (run.summary as Summary)
    : null;

/** Whether the session has a managed run: then what the agent reported is what the model would have
    seen without us, and no call need have been sent it. */
export const isManaged = ({ runs }: Pick<ManifestJson, 'runs'>): boolean =>
  runs.some((run) => run.origin === 'managed');

/** Tokens as the pages show them: the stored count times the session's ratio, rounded half up. */
export const shownTokens = (tokens: number, ratio: number): number =>
  Math.floor((tokens * ratio + 500) / 1000);

/** The end of an interval that is still open: after every step there can be. */
export const everOpen = 0x7fffffff;

/** The same column with room for `length` values. */
export function grown<Column extends Int32Array | Uint8Array | Float64Array>(
  column: Column,
  length: number,
): Column {
  if (column.length >= length) return column;
  const wider = new (column.constructor as new (length: number) => Column)(length);
  wider.set(column);
  return wider;
}

const kindIndexes = (names: readonly string[]): number[] =>
  names.map((name) => Math.max(0, (kindNames as readonly string[]).indexOf(name)));

export function decodeEntries(
  columns: EntryColumns,
  names: readonly string[],
  ratio: number,
): Entries {
  const own = kindIndexes(names);
  return {
    count: columns.from.length,
    from: Int32Array.from(columns.from),
    to: Int32Array.from(columns.to, (to) => to || everOpen),
    kind: Uint8Array.from(columns.kind, (kind) => own[kind] ?? kindNames.indexOf('other')),
    shown: Int32Array.from(columns.tokens, (tokens) => shownTokens(tokens, ratio)),
    message: Int32Array.from(columns.message),
    index: Int32Array.from(columns.index),
    flags: Uint8Array.from(columns.flags),
    edit: Int32Array.from(columns.edit),
    closed: Int32Array.from(columns.closed),
  };
}

export function decode(json: ManifestJson): Manifest {
  const entries = decodeEntries(json.entries, json.kinds, json.session.ratio);
  // One more than there were calls: the context that the next call would see.
  const manifest = { ...json, entries, last: json.session.steps + 1 };
  setAside(manifest, 1);
  return manifest;
}

/** In the recorded run, the prompt of a call that got a context of ours is not what its rows come to. */
export function setAside(manifest: Pick<Manifest, 'run' | 'steps'>, from: number): void {
  const { run, steps } = manifest;
  if (run.origin !== 'recorded' || !steps.managed) return;
  for (let i = from - 1; i < steps.managed.length; i++) {
    if (steps.managed[i])
      for (const name of ['prompt', 'uncached', 'read', 'write'] as const) steps[name][i] = null;
  }
}
