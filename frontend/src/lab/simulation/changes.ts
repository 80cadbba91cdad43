/* How one figure differs from another, in words. */
import * as format from '../../web/format';

/** By which share `now` differs; null where there is nothing to compare with. */
export const changeOf = (now: number | null, then: number | null): number | null =>
  now === null || !then ? null : now / then - 1;

/** "−12 %", "+0.4 %", "×402", "same": how a change is written everywhere in the lab. */
export function changeText(change: number | null): string {
  if (change === null) return '–';
  const text = format.relative(change);
  return text === '0 %' ? 'same' : text;
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
