/* What is said of a simulation in words. */
import * as format from '../../web/format';
import { changeText } from './changes';
import { reference, type Beside, type Body, type Spread, type Sums, type Version } from './body';
import { losers } from './lines';

/** How a spread of ratios is written: "−12 % [−21 … +3]". */
export function spreadText(spread: Spread | null | undefined): string {
  if (!spread) return '–';
  if (spread.n === 1) return changeText(spread.median - 1);
  return `${changeText(spread.median - 1)} [${changeText(spread.p10 - 1)} … ${changeText(spread.p90 - 1)}]`;
}

const versionOf = (body: Body, role: Version['role']): Version | undefined =>
  body.versions.find((one) => one.role === role);

/** What lies behind the sums:
    "31 of 40 sessions get cheaper, 3 lose a fact they needed; the median session −12 % [−21 % … +3 %]." */
export function summary(body: Body, beside: Beside): string {
  const draft = versionOf(body, 'draft');
  if (!draft || !body.through) return '';
  const { role } = reference(body);
  const against = role === 'active' ? draft.against_active : null;
  const spreads = role === 'active' ? draft.against_active : draft.against_recorded;
  const parts: string[] = [];
  if (against?.priced)
    parts.push(
      `${against.cheaper} of ${format.plural(against.priced, 'session')} get cheaper, ${against.costlier} costlier`,
    );
  if (role === 'active') {
    const lost = losers(beside.sessions);
    parts.push(
      lost
        ? `${lost} ${lost === 1 ? 'loses' : 'lose'} a fact that was needed later`
        : 'none loses a fact that was needed later',
    );
  }
  if (against?.hides_more)
    parts.push(`${against.hides_more} ${against.hides_more === 1 ? 'has' : 'have'} lower recall`);
  const spread = spreads?.cost ?? spreads?.tokens ?? null;
  if (spread && spread.n > 1) {
    const of = spreads?.cost ? 'cost including reading back' : 'tokens sent';
    const [middle, low, high] = [spread.median, spread.p10, spread.p90].map((one) =>
      changeText(one - 1),
    );
    parts.push(`${of} of the median session ${middle} (p10 ${low}, p90 ${high})`);
  }
  const text = parts.length ? `${parts.join('; ')}.` : '';
  return [text.charAt(0).toUpperCase() + text.slice(1), ttlApart(draft.sums)]
    .filter(Boolean)
    .join(' ');
}

/** What the TTL of a version alone changes of the recorded cost, and what its edits do; "" where it is as recorded. */
export function ttlApart(sums: Sums): string {
  const {
    cost_microusd: cost,
    cost_recorded_microusd: base,
    cost_recorded_ttl_microusd: ttl,
  } = sums;
  if (!base || cost === null || ttl === undefined || ttl === null || ttl === base) return '';
  const [alone, edits] = [ttl - base, cost - ttl].map((by) => changeText(by / base));
  return `Against the recorded cost, the TTL changes ${alone} and edits ${edits}.`;
}

/** How much of the measured tokens the simulation of the recording gives, and which changes compare with that:
    "" where no usage was reported. */
export function reproduced(recorded: Version | undefined): string {
  const [usage, tokens] = [recorded?.measured, recorded?.sums.tokens_sent];
  if (!usage || !tokens) return '';
  const of = usage.tokens_at_least
    ? `${format.tokens(tokens)} tokens; some calls report no usage, so its share of the measured tokens is unknown`
    : `${format.tokens(tokens)} of the ${format.tokens(usage.tokens)} measured tokens (${format.percent(tokens / usage.tokens)})`;
  return `The recording as simulated sends ${of}. Where both are shown, changes compare with the figure as simulated.`;
}

/** Which part of the sessions the figures are of; "" for all of them. */
export const sofar = ({ through, total }: { through: number; total: number }): string =>
  through < total ? `${through} of ${format.plural(total, 'session')}` : '';
