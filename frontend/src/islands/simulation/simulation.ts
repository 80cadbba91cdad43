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

const versionOf = (body: Body, role: Version['role']): Version | undefined => body.versions.find((one) => one.role === role);

export type Reference = { role: 'active' | 'unmanaged'; name: string };

/** With what the draft is compared: the active version, or the recording where the draft is that version itself. */
export const reference = (body: Body): Reference => (body.draft === body.active ? { role: 'unmanaged', name: 'the recording' } : { role: 'active', name: body.active });

/** What comes first: the sums over all sessions, "Summed over 40 sessions, cost −12 % against balanced@1 ($3.10 instead of $3.52); in place +1.2 points." */
export function headline(body: Body): string {
  const draft = versionOf(body, 'draft');
  if (!draft || !body.through) return isUnderWay(body.state) ? 'No session is through yet.' : 'No session could be simulated.';
  const { role, name } = reference(body);
  const other = versionOf(body, role);
  if (!other) return '';
  const [now, then] = [draft.sums, other.sums];
  const isPriced = now.cost_microusd !== null && then.cost_microusd !== null && now.priced > 0 && now.priced === then.priced;
  const so = isUnderWay(body.state) ? `So far, summed over ${body.through} of ${format.plural(body.total, 'session')}` : `Summed over ${format.plural(body.through, 'session')}`;
  const those = isPriced && now.priced < body.through ? ` (cost over the ${now.priced} with a price)` : '';
  const by = isPriced ? ratio(now.cost_microusd, then.cost_microusd) : ratio(now.tokens_sent, then.tokens_sent);
  const amounts = isPriced ? `${format.money(now.cost_microusd!)} instead of ${format.money(then.cost_microusd!)}` : `${format.tokens(now.tokens_sent ?? 0)} instead of ${format.tokens(then.tokens_sent ?? 0)}`;
  const place = now.in_place !== null && then.in_place !== null ? `; needs in place ${pointsText(now.in_place, then.in_place)}` : '';
  return `${so}${those}, ${isPriced ? 'cost' : 'tokens sent'} ${changeText(by)} against ${name} (${amounts})${place}.`;
}

/** What lies behind the sums: "31 of 40 sessions get cheaper, 3 lose a fact they needed; the median session −12 % [−21 % … +3 %]." */
export function summary(body: Body, beside: Beside): string {
  const draft = versionOf(body, 'draft');
  if (!draft || !body.through) return '';
  const { role } = reference(body);
  const against = role === 'active' ? draft.against_active : null;
  const spreads = role === 'active' ? draft.against_active : draft.against_unmanaged;
  const parts: string[] = [];
  if (against?.priced) parts.push(`${against.cheaper} of ${format.plural(against.priced, 'session')} get cheaper, ${against.dearer} dearer`);
  if (role === 'active') {
    const lost = losers(beside.sessions);
    parts.push(lost ? `${lost} ${lost === 1 ? 'loses' : 'lose'} a fact that was needed later` : 'none loses a fact that was needed later');
  }
  if (against?.hides_more) parts.push(`${against.hides_more} ${against.hides_more === 1 ? 'has' : 'have'} fewer needs in place`);
  const spread = spreads?.cost ?? spreads?.tokens ?? null;
  if (spread && spread.n > 1) parts.push(`the session in the middle ${spreadText(spread)} (median [10th … 90th percentile] of ${spreads?.cost ? 'cost' : 'tokens sent'})`);
  const text = parts.length ? `${parts.join('; ')}.` : '';
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export type Change = { text: string; tone: 'less' | 'more' | 'muted' };
export type Row = { name: string; means?: string; of(version: Version): string; change(draft: Version, other: Version): Change | null };

const ratio = (now: number | null | undefined, then: number | null | undefined): number | null => (now === null || now === undefined || !then ? null : now / then - 1);
const share = (value: number): string => format.percent(value, 1);

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

type Role = Reference['role'];
export const costChange = (line: SessionLine, role: Role): number | null => ratio(line.draft?.cost_microusd, line[role]?.cost_microusd);
export const tokensChange = (line: SessionLine, role: Role): number | null => ratio(line.draft?.tokens_sent, line[role]?.tokens_sent);
/** Null too against a recording, of which nobody asks what was needed. */
export function placeChange(line: SessionLine, role: Role): number | null {
  const [now, then] = [line.draft, line[role]];
  return now?.needs && then?.needs ? (now.in_place ?? 0) - (then.in_place ?? 0) : null;
}

/** Worst first; what cannot be told stands last. */
export function sorted(lines: readonly SessionLine[], by: Sort, role: Role): SessionLine[] {
  if (by === 'order') return [...lines];
  const change = { cost: costChange, tokens: tokensChange, place: placeChange }[by];
  const harm = (line: SessionLine) => (change(line, role) ?? -Infinity) * (by === 'place' && change(line, role) !== null ? -1 : 1);
  return [...lines].sort((a, b) => harm(b) - harm(a));
}
