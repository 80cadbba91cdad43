/* Estimates of many sessions added up, and one beside another. */
import type { Estimate } from './estimate';
import type { Sizes } from './sizes';
import { cost } from './cost';

export type Totals = {
  sent: number;
  peak: number;
  cost: number | null;
  priced: number;
  read: number | null;
  compactions: number;
};

/** What the recording itself comes to by the same rules: as its log shows it, its own compactions included. */
export function recorded(sizes: Sizes): Estimate {
  const { recorded: totals, hidden, other, steps } = sizes;
  const stays = hidden + (other[0] ?? 0);
  const fell = totals.map((total, i) => i > 0 && total < totals[i - 1]);
  const prompts = totals.map((total, i) => ({
    total,
    unchanged: fell[i] ? Math.min(stays, total) : null,
  }));
  return {
    prompts: totals,
    sent: totals.reduce((sum, one) => sum + one, 0),
    peak: Math.max(0, ...totals),
    ...cost(sizes, prompts, 'recorded'),
    // Less than half of it is left: nothing but a compaction does that.
    compactions: totals.filter((total, i) => i > 0 && i < steps && total < totals[i - 1] / 2)
      .length,
    edits: fell.filter(Boolean).length,
  };
}

export function totalsOf(estimates: readonly Estimate[]): Totals {
  const priced = estimates.filter((one) => one.cost !== null);
  const ruled = estimates.filter((one) => one.read !== null);
  const sentRuled = ruled.reduce((sum, one) => sum + one.sent, 0);
  return {
    sent: estimates.reduce((sum, one) => sum + one.sent, 0),
    peak: estimates.reduce((most, one) => Math.max(most, one.peak), 0),
    cost: priced.length ? priced.reduce((sum, one) => sum + one.cost!, 0) : null,
    priced: priced.length,
    read: sentRuled ? ruled.reduce((sum, one) => sum + one.read!, 0) / sentRuled : null,
    compactions: estimates.reduce((sum, one) => sum + one.compactions, 0),
  };
}

/** By which share `now` differs; null where there is nothing to compare with. */
export const changeOf = (now: number | null, then: number | null): number | null =>
  now === null || !then ? null : now / then - 1;

/** "−12 %", "+0.4 %", "same": how a change is written everywhere in the lab. */
export function changeText(change: number | null): string {
  if (change === null) return '–';
  const percent = change * 100;
  if (Math.abs(percent) < 0.05) return 'same';
  return `${percent > 0 ? '+' : '−'}${Math.abs(percent).toFixed(Math.abs(percent) < 9.95 ? 1 : 0)} %`;
}

/** How far two shares are apart: "−4.5 points". */
export function pointsText(
  now: number | null | undefined,
  then: number | null | undefined,
): string {
  if (now === null || then === null || now === undefined || then === undefined) return '–';
  const points = (now - then) * 100;
  return Math.abs(points) < 0.05
    ? 'same'
    : `${points > 0 ? '+' : '−'}${Math.abs(points).toFixed(1)} points`;
}
