/* The manifest as the server sends it, and as the page keeps it: typed arrays over entries and steps. */

export const kindNames = ['tools', 'system', 'memory', 'file', 'summary', 'user', 'assistant', 'thinking', 'result', 'other'] as const;
export type Kind = (typeof kindNames)[number];

export const kindTitles: Record<Kind, [code: string, title: string]> = {
  tools: ['TD', 'Tool definitions'], system: ['SY', 'System'], memory: ['ME', 'Memory'], file: ['FI', 'Files'], summary: ['SU', 'Summary'],
  user: ['US', 'User'], assistant: ['AS', 'Assistant'], thinking: ['TH', 'Thinking'], result: ['TR', 'Tool results'], other: ['OT', 'Other'],
};

export const Flag = { error: 1, pinned: 2, replacement: 4, toolUse: 8, toolResult: 16, late: 32, image: 64 } as const;
export const Basis = { measured: 0, estimated: 1, simulated: 2 } as const;

export type Origin = 'recorded' | 'served' | 'simulated';
export type EventKind = 'compaction' | 'offload' | 'window' | 'clear' | 'rewind' | 'break' | 'error' | 'model' | 'subagent';
export type RunState = 'ready' | 'missing' | 'running';

export type SessionHead = {
  id: string; title: string; agent: string; model: string; ratio: number;
  window: number; window_assumed: boolean; // assumed where nobody knows the model's window
  basis: 'exact' | 'calibrated' | 'estimated'; steps: number; hidden: number;
  parent: { id: string; title: string; step: number } | null;
  children: Child[]; version: number; live: boolean;
  cost_at_least?: boolean; // reported outputs are smaller than what the log shows of them
};
export type Child = { id: string; title: string; step: number; steps: number; tokens_peak: number };
export type Run = { id: string; origin: Origin; label: string; policy: string | null; summary: Summary | Record<string, never> | null };
/** What a simulation comes to; a recorded run has none. Shares of needs sum to 1. */
export type Summary = {
  tokens_sent: number; tokens_sent_recorded: number; tokens_sent_measured?: boolean; peak_tokens: number;
  cost_microusd: number | null; cost_unmanaged_microusd: number | null; cost_recorded_microusd?: number | null; cache_read_share: number | null;
  needs: number; in_place: number; named: number; retrievable: number; lost: number;
  revisions: number; refusals: number; window_assumed: boolean;
};
export type RunChoice = { id: string; origin: Origin; label: string; state: RunState; job: string | null };
export type Cause = { step: number; kind: string; title: string; detail: string; tokens: number | null; cost_microusd: number | null; advice: string };
export type SessionEvent = { step: number; kind: EventKind; revision: number | null; label: string; before: number | null; after: number | null; url: string | null; basis?: 'measured' | 'estimated' | 'simulated' | null };
type Column = (number | null)[];

export type ManifestJson = {
  v: number; session: SessionHead; run: Run; runs: RunChoice[]; presets: string[]; lines: { trigger: number | null };
  entries: Record<'from' | 'to' | 'kind' | 'tokens' | 'message' | 'index' | 'flags' | 'edit' | 'closed', number[]>;
  kinds: string[];
  steps: Record<'at' | 'prompt' | 'fresh' | 'read' | 'write' | 'output' | 'cost' | 'basis' | 'turn' | 'cause' | 'model', Column>;
  causes: Cause[]; models: string[]; events: SessionEvent[];
};

export type Entries = {
  count: number; from: Int32Array; to: Int32Array; kind: Uint8Array; shown: Int32Array;
  message: Int32Array; index: Int32Array; flags: Uint8Array; edit: Int32Array; closed: Int32Array;
};
export type Manifest = Omit<ManifestJson, 'entries' | 'kinds'> & { entries: Entries; last: number };

/** What a policy did to the session, if a policy did. */
export const summaryOf = (run: Run): Summary | null => (run.origin === 'simulated' && run.summary && 'needs' in run.summary ? (run.summary as Summary) : null);

/** Tokens as the pages show them: the stored count times the session's ratio, rounded half up. */
export const shownTokens = (tokens: number, ratio: number): number => Math.floor((tokens * ratio + 500) / 1000);

export function decode(json: ManifestJson): Manifest {
  const own = json.kinds.map((name) => Math.max(0, (kindNames as readonly string[]).indexOf(name)));
  const { entries: columns } = json;
  const count = columns.from.length;
  const entries: Entries = {
    count,
    from: Int32Array.from(columns.from),
    // An interval that is still open ends after every step there can be.
    to: Int32Array.from(columns.to, (to) => to || 0x7fffffff),
    kind: Uint8Array.from(columns.kind, (kind) => own[kind] ?? kindNames.indexOf('other')),
    shown: Int32Array.from(columns.tokens, (tokens) => shownTokens(tokens, json.session.ratio)),
    message: Int32Array.from(columns.message),
    index: Int32Array.from(columns.index),
    flags: Uint8Array.from(columns.flags),
    edit: Int32Array.from(columns.edit),
    closed: Int32Array.from(columns.closed),
  };
  // One more than there were calls: the context that the next call would see.
  return { ...json, entries, last: json.session.steps + 1 };
}
