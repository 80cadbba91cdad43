/* The figures of a version, and how they differ from another's. */
import * as format from '../../web/format';
import { changeText, pointsText } from './changes';
import type { Measured, Sums, Version } from './body';

export type Change = { text: string; tone: 'less' | 'more' | 'muted' };
export type Row = {
  name: string;
  means?: string;
  of(version: Version): string;
  change(draft: Version, other: Version): Change | null;
  measured?(usage: Measured, sums: Sums): string | null;
};

/** A figure of the recorded baseline as its logs report it, and the one that changes compare with where the simulation
    of the recording gives another; null of versions and of other figures. */
export function measured(
  row: Row,
  version: Version,
): { text: string; compared: string | null } | null {
  const usage = version.measured;
  const text = usage ? row.measured?.(usage, version.sums) : null;
  if (!text) return null;
  const counted = row.of(version);
  return { text, compared: text.endsWith(counted) ? null : counted };
}

/** By what share it changed, or null where either is unknown. */
export const ratio = (
  now: number | null | undefined,
  then: number | null | undefined,
): number | null => (now === null || now === undefined || !then ? null : now / then - 1);
const share = (value: number): string => format.percent(value, 1);

/** In two colors: what one wants less of, and what one wants more of; `better` is -1 for the latter. */
export function toned(by: number | null, better: 1 | -1 = 1): Change['tone'] {
  if (by === null || Math.abs(by) < 0.0005) return 'muted';
  return by * better < 0 ? 'less' : 'more';
}

type Key = { [K in keyof Sums]-?: NonNullable<Sums[K]> extends number ? K : never }[keyof Sums];

function row(
  name: string,
  key: Key,
  show: (value: number) => string,
  kind: 'ratio' | 'points' | 'count',
  means = '',
  better: 1 | -1 | 0 = 1,
): Row {
  const of = (version: Version) => version.sums[key] ?? null;
  return {
    name,
    means,
    of: (version) =>
      of(version) === null
        ? key === 'charged_microusd' || key === 'cost_microusd'
          ? 'unknown'
          : '–'
        : show(of(version)!),
    change(draft, other) {
      const [now, then] = [of(draft), of(other)];
      if (now === null || then === null) return null;
      const text =
        kind === 'ratio'
          ? changeText(ratio(now, then))
          : kind === 'points'
            ? pointsText(now, then)
            : format.exactChange(now - then);
      return {
        text,
        tone: better ? toned(kind === 'ratio' ? ratio(now, then) : now - then, better) : 'muted',
      };
    },
  };
}

const bound = (atLeast: boolean): string => (atLeast ? '≥' : '');

const measuredCost = (usage: Measured, sums: Sums): string | null =>
  usage.cost_measured && sums.cost_microusd !== null
    ? bound(usage.cost_at_least) + format.money(sums.cost_microusd)
    : null;

/** The figures of the table, one line each. */
export const rows: Row[] = [
  {
    ...row('Tokens sent', 'tokens_sent', format.tokens, 'ratio'),
    measured: (usage) => bound(usage.tokens_at_least) + format.tokens(usage.tokens),
  },
  row('Highest peak', 'peak_tokens', format.tokens, 'ratio'),
  {
    ...row(
      'Cost including reading back',
      'charged_microusd',
      format.money,
      'ratio',
      'The cost, and one more call for each step whose needs are not in context',
    ),
    measured: measuredCost,
  },
  {
    ...row(
      'Cost without reading back',
      'cost_microusd',
      format.money,
      'ratio',
      'With what broken caches cost; prices as listed when a session began',
    ),
    measured: measuredCost,
  },
  {
    ...row('Read from the cache', 'cache_read_share', share, 'points', '', -1),
    measured: (usage) => share(usage.cache_read_share),
  },
  row('Compactions', 'compactions', format.exact, 'count', '', 0),
  row('Revisions', 'revisions', format.exact, 'count', 'Steps at which the context was edited', 0),
  row(
    'Needed facts in context',
    'in_context',
    share,
    'points',
    'Of the facts that later calls used: still there as they were',
    -1,
  ),
  row('Needed facts named', 'named', share, 'points', 'A stub or a summary says it', 0),
  row(
    'Needed facts retrievable',
    'retrievable',
    share,
    'points',
    'Gone, but a stub says how to read it back',
    0,
  ),
  row('Needed facts lost', 'lost', share, 'points', 'Gone without a trace'),
  row(
    'Read back',
    'read_back_tokens',
    format.tokens,
    'ratio',
    'Tokens that the agent would read again for what is only retrievable; in no other figure',
  ),
  row(
    'Cost of reading back',
    'read_backs_microusd',
    format.money,
    'ratio',
    'One more call for each step whose needs are not in context',
  ),
  row(
    'Edits whose old text is in context',
    'edits_feasible',
    share,
    'points',
    'Of the edits that the agent made: the model still saw the text that it replaced',
    -1,
  ),
  row(
    'Agent’s own words in context',
    'said_in_context',
    share,
    'points',
    "Facts in the agent's own words that it had seen before: still there as they were",
    -1,
  ),
];
