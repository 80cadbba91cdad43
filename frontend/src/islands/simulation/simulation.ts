/* What a simulation tells, as sessions/api/shapes.py gives it, and what is said of it in words. */
import type { ScatterProps } from '../../chart/scatter';
import * as format from '../../format';
import { changeText, pointsText } from '../lab/totals';

export type Spread = { median: number; p10: number; p90: number; n: number };
export type Sums = {
  tokens_sent?: number;
  peak_tokens: number;
  peak_share: Spread | null;
  cost_microusd: number | null;
  priced: number;
  cache_read_share: number | null;
  compactions?: number;
  revisions?: number;
  needs?: number;
  in_place: number | null;
  named: number | null;
  retrievable: number | null;
  lost: number | null;
  read_back_tokens?: number;
};
export type Against = { tokens: Spread | null; cost: Spread | null; peak: Spread | null; priced: number; cheaper: number; dearer: number; with_needs: number; hides_more: number };
export type Version = { ref: string; name: string; number: number | null; role: 'draft' | 'active' | 'other' | 'unmanaged'; sessions: number; sums: Sums; against_unmanaged: { tokens: Spread | null; cost: Spread | null } | null; against_active: Against | null };
export type Regression = { session: string; title: string; version: string; step: number | null; entry: string | null; fact: string | null; why: string; harm: number; cost_change: number | null; in_place_change: number; run_url: string | null };
export type Body = {
  id: string;
  state: 'queued' | 'running' | 'done' | 'partial' | 'failed' | 'cancelled';
  done: number;
  total: number;
  draft: string;
  active: string;
  note: string;
  job: string | null;
  problem: { title?: string; detail?: string; action?: string } | null;
  through: number;
  problems: { session: string; title: string; problem: string }[];
  versions: Version[];
  regressions: Regression[];
  assumptions: string[];
  chosen: Record<string, unknown>;
};
export type Figures = { tokens_sent: number; peak_tokens: number; cost_microusd: number | null; in_place?: number | null; lost?: number | null; needs?: number | null };
export type SessionLine = { id: string; title: string; steps: number | null; problem: string; draft: Figures | null; active: Figures | null; unmanaged: Figures | null };
export type Tried = { ref: string; role: 'draft' | 'active' | 'other' | 'tried'; cost: number; in_place: number | null; lost: number | null; url: string | null };
export type Beside = { sessions: SessionLine[]; tried: Tried[] };

/** Where the page finds and sends everything, and whether its reader may. */
export type Addresses = { may_write: boolean; body_url: string; beside_url: string; cancel_url: string; again_url: string; propose_url: string; policy_url: string; replay_url: string; simulate_url: string; job_url: string };

export const isUnderWay = (state: Body['state']): boolean => state === 'queued' || state === 'running';

/** How a spread of ratios is written: "−12 % [−21 … +3]". */
export function spreadText(spread: Spread | null | undefined): string {
  if (!spread) return '–';
  if (spread.n === 1) return changeText(spread.median - 1);
  return `${changeText(spread.median - 1)} [${changeText(spread.p10 - 1)} … ${changeText(spread.p90 - 1)}]`;
}

/** Sessions of which something that they needed is lost under the draft and was not under the active version. */
export const losers = (lines: readonly SessionLine[]): number => lines.filter((line) => (line.draft?.lost ?? 0) > (line.active?.lost ?? 0)).length;

/** "31 of 40 sessions get cheaper, 3 lose a fact they needed." */
export function summary(body: Body, beside: Beside): string {
  const draft = body.versions.find((one) => one.role === 'draft');
  const against = draft?.against_active;
  if (!draft || !body.through) return isUnderWay(body.state) ? 'No session is through yet.' : 'No session could be simulated.';
  const so = isUnderWay(body.state) ? `So far, of ${body.through} of ${body.total} sessions: ` : '';
  if (body.draft === body.active) {
    const cost = draft.against_unmanaged?.cost ?? draft.against_unmanaged?.tokens ?? null;
    return `${so}The draft is the active version. Against the recording, ${draft.against_unmanaged?.cost ? 'cost' : 'tokens sent'} changes by ${spreadText(cost)} (median [p10 … p90]).`;
  }
  const parts: string[] = [];
  if (against?.priced) parts.push(`${against.cheaper} of ${format.plural(against.priced, 'session')} get cheaper, ${against.dearer} dearer`);
  else parts.push(`tokens sent change by ${spreadText(against?.tokens)}`);
  const lost = losers(beside.sessions);
  parts.push(lost ? `${lost} ${lost === 1 ? 'loses' : 'lose'} a fact that was needed later` : 'none loses a fact that was needed later');
  if (against?.hides_more) parts.push(`${against.hides_more} ${against.hides_more === 1 ? 'has' : 'have'} fewer needs in place`);
  const text = `${parts.join('; ')}.${allInAll(draft.sums, body.versions.find((one) => one.role === 'active')?.sums)}`;
  return so + (so ? text : text.charAt(0).toUpperCase() + text.slice(1));
}

/** " All in all cost +3.3 %, in place +8.4 points.": the sums against those of the active version. */
function allInAll(draft: Sums, active: Sums | undefined): string {
  if (!active) return '';
  const cost = ratio(draft.cost_microusd, active.cost_microusd);
  const parts = [cost === null ? `tokens sent ${changeText(ratio(draft.tokens_sent, active.tokens_sent))}` : `cost ${changeText(cost)}`];
  if (draft.in_place !== null && active.in_place !== null) parts.push(`in place ${pointsText(draft.in_place, active.in_place)}`);
  return ` All in all ${parts.join(', ')}.`;
}

export type Change = { text: string; tone: 'less' | 'more' | 'muted' };
export type Row = { name: string; means?: string; of(version: Version): string; change(draft: Version, other: Version): Change | null };

const ratio = (now: number | null | undefined, then: number | null | undefined): number | null => (now === null || now === undefined || !then ? null : now / then - 1);
const share = (value: number): string => format.percent(value, value && value < 0.9995 ? 1 : 0);

/** In two colours: what one wants less of, and what one wants more of; `better` is -1 for the latter. */
export function toned(by: number | null, better: 1 | -1 = 1): Change['tone'] {
  if (by === null || Math.abs(by) < 0.0005) return 'muted';
  return by * better < 0 ? 'less' : 'more';
}

type Key = { [K in keyof Sums]-?: NonNullable<Sums[K]> extends number ? K : never }[keyof Sums];

function row(name: string, key: Key, show: (value: number) => string, kind: 'ratio' | 'points' | 'count', means = '', better: 1 | -1 | 0 = 1): Row {
  const of = (version: Version) => version.sums[key] ?? null;
  return {
    name, means,
    of: (version) => (of(version) === null ? (key === 'cost_microusd' ? 'unknown' : '–') : show(of(version)!)),
    change(draft, other) {
      const [now, then] = [of(draft), of(other)];
      if (now === null || then === null) return null;
      const text = kind === 'ratio' ? changeText(ratio(now, then)) : kind === 'points' ? pointsText(now, then) : format.exactChange(now - then);
      return { text, tone: better ? toned(kind === 'ratio' ? ratio(now, then) : now - then, better) : 'muted' };
    },
  };
}

/** The figures of the table, one line each. */
export const rows: Row[] = [
  row('Tokens sent', 'tokens_sent', format.tokens, 'ratio'),
  row('Highest peak', 'peak_tokens', format.tokens, 'ratio'),
  row('Cost', 'cost_microusd', format.money, 'ratio', 'With what broken caches cost; prices as listed when a session began'),
  row('Read from the cache', 'cache_read_share', share, 'points', '', -1),
  row('Compactions', 'compactions', format.exact, 'count', '', 0),
  row('Revisions', 'revisions', format.exact, 'count', 'Steps at which the context was edited', 0),
  row('Needs in place', 'in_place', share, 'points', 'Of the facts that later calls used: still there as they were', -1),
  row('Needs named', 'named', share, 'points', 'A stub or a summary says it', 0),
  row('Needs retrievable', 'retrievable', share, 'points', 'Gone, but a stub says how to read it back', 0),
  row('Needs lost', 'lost', share, 'points', 'Gone without a trace'),
  row('Read back', 'read_back_tokens', format.tokens, 'ratio', 'Tokens that the agent would read again for what is only retrievable; in no other figure'),
];

/** Cost against what stays in place: every version that was tried on these sessions, and the recording. */
export function scatterOf(body: Body, beside: Beside): ScatterProps {
  const groups = [
    { name: 'draft', shape: 'diamond' as const },
    { name: 'active', shape: 'square' as const },
    { name: 'other', shape: 'triangle' as const, means: 'Compared in this simulation' },
    { name: 'tried', shape: 'circle' as const, means: 'Earlier drafts of this policy on the same sessions' },
  ].filter((group) => beside.tried.some((one) => one.role === group.name));
  return {
    title: 'Cost against needs in place',
    x: { label: 'cost', unit: 'microusd' },
    y: { label: 'needs in place', unit: 'share' },
    points: beside.tried.filter((one) => one.in_place !== null).map((one) => ({ x: one.cost, y: one.in_place!, label: one.ref, group: one.role, here: one.role === 'draft', url: one.url ?? undefined })),
    groups,
    basis: 'simulated',
    note: body.through < body.total ? 'A version is drawn once all sessions are through.' : 'The dashed line joins versions that no other beats on both.',
  };
}

export type Sort = 'order' | 'cost' | 'tokens' | 'place';

export const costChange = (line: SessionLine): number | null => ratio(line.draft?.cost_microusd, line.active?.cost_microusd);
export const tokensChange = (line: SessionLine): number | null => ratio(line.draft?.tokens_sent, line.active?.tokens_sent);
export const placeChange = (line: SessionLine): number | null => (line.draft?.needs && line.active?.needs ? (line.draft.in_place ?? 0) - (line.active.in_place ?? 0) : null);

/** Worst first; what cannot be told stands last. */
export function sorted(lines: readonly SessionLine[], by: Sort): SessionLine[] {
  if (by === 'order') return [...lines];
  const harm = { cost: costChange, tokens: tokensChange, place: (line: SessionLine) => (placeChange(line) === null ? null : -placeChange(line)!) }[by];
  return [...lines].sort((a, b) => (harm(b) ?? -Infinity) - (harm(a) ?? -Infinity));
}
