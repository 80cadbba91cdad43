/* What a simulation tells, as sessions/api/shapes.py gives it. */

export type Spread = { median: number; p10: number; p90: number; n: number };
export type Sums = {
  tokens_sent?: number;
  peak_tokens: number;
  peak_share: Spread | null;
  cost_microusd: number | null;
  charged_microusd: number | null; // including reading back
  cost_recorded_microusd?: number | null;
  cost_recorded_ttl_microusd?: number | null; // as recorded, with the TTL of the version
  priced: number;
  cache_read_share: number | null;
  compactions?: number;
  revisions?: number;
  needs?: number;
  in_context: number | null;
  named: number | null;
  retrievable: number | null;
  lost: number | null;
  read_back_tokens?: number;
  read_backs_microusd?: number | null;
  edits_feasible?: number | null;
  said_in_context?: number | null;
  oracle_microusd?: number | null;
};
export type Against = {
  tokens: Spread | null;
  cost: Spread | null;
  peak: Spread | null;
  priced: number;
  cheaper: number;
  costlier: number;
  with_needs: number;
  hides_more: number;
};
/** What the logs report of the recorded baseline; "at least" where calls or prices are missing. */
export type Measured = {
  sessions: number;
  tokens: number;
  cache_read_share: number;
  tokens_at_least: boolean;
  cost_at_least: boolean;
  cost_measured: boolean;
};
export type Version = {
  ref: string;
  name: string;
  number: number | null;
  role: 'draft' | 'active' | 'other' | 'recorded';
  sessions: number;
  sums: Sums;
  against_recorded: { tokens: Spread | null; cost: Spread | null } | null;
  against_active: Against | null;
  measured?: Measured | null;
};
/** What a real model answered at steps of these sessions, under one of the two contexts. */
export type ProbeSide = {
  steps: number;
  tool: number;
  arguments: number;
  read_backs: number;
  imitates: number;
  prompt_tokens: number;
  output_tokens: number;
  microusd: number;
};
export type Probe = { model: string; recorded: ProbeSide; managed: ProbeSide };
export type Regression = {
  session: string;
  title: string;
  version: string;
  step: number | null;
  entry: string | null;
  fact: string | null;
  why: string;
  harm: number;
  cost_change: number | null;
  in_context_change: number;
  run_url: string | null;
};
/** What the results come to so far; a dominated draft is not to be proposed. */
type Judged = {
  tone: 'good' | 'bad' | 'neutral';
  sentence: string;
  detail: string;
  dominated: boolean;
};
export type Body = {
  id: string;
  state: 'queued' | 'running' | 'done' | 'partial' | 'failed' | 'cancelled';
  done: number;
  total: number;
  draft: string;
  active: string;
  against: Reference['role'];
  note: string;
  job: string | null;
  problem: { title?: string; detail?: string; action?: string } | null;
  through: number;
  verdict: Judged;
  problems: { session: string; title: string; problem: string }[];
  versions: Version[];
  regressions: Regression[];
  probes: Probe[];
  assumptions: string[];
  chosen: Record<string, unknown>;
};
export type Figures = {
  tokens_sent: number;
  charged_microusd: number | null; // cost including reading back
  in_context?: number | null;
  lost?: number | null;
  needs?: number | null;
};
export type SessionLine = {
  id: string;
  title: string;
  steps: number | null;
  problem: string;
  draft: Figures | null;
  active: Figures | null;
  recorded: Figures | null;
};
type Tried = {
  ref: string;
  role: 'draft' | 'active' | 'other' | 'tried';
  cost: number;
  in_context: number | null;
  lost: number | null;
  url: string | null;
};
export type Beside = { sessions: SessionLine[]; tried: Tried[] };

/** Where the page finds and sends everything, and whether its reader may. */
export type Addresses = {
  may_write: boolean;
  body_url: string;
  beside_url: string;
  cancel_url: string;
  again_url: string;
  propose_url: string;
  policy_url: string;
  replay_url: string;
  simulate_url: string;
  job_url: string;
};

export const isUnderWay = (state: Body['state']): boolean =>
  state === 'queued' || state === 'running';

export type Reference = { role: 'active' | 'recorded'; name: string };

/** With what the draft is compared: the active version, or the recording where the draft is that version itself
    or one was asked for against it. */
export const reference = (body: Body): Reference =>
  body.against === 'recorded'
    ? { role: 'recorded', name: 'the recording' }
    : { role: 'active', name: body.active };
