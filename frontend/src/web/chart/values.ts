/* Values as a chart writes them: on its axes, at its cursor, in its table. */
import * as format from '../format';
import type { Unit, XKind } from './chart';

const day = 86_400_000;
const dates = new Intl.DateTimeFormat('en-US', {
  month: 'short',
  day: 'numeric',
  year: 'numeric',
  timeZone: 'UTC',
});

export function show(value: number | null | undefined, unit: Unit): string {
  if (value === null || value === undefined) return '–';
  if (unit === 'tokens') return format.tokens(value);
  if (unit === 'microusd') return format.money(value);
  if (unit === 'share') return format.percent(value, 1);
  if (unit === 'ms') return format.duration(value);
  return Number.isInteger(value) ? format.exact(value) : value.toFixed(1);
}

/** Shorter: what stands beside a line of the grid. */
export function tick(value: number, unit: Unit): string {
  if (unit === 'tokens') return format.round(value);
  if (unit === 'share') return `${+(value * 100).toFixed(1)} %`;
  if (unit === 'microusd') return value === 0 ? '$0' : `$${+(value / 1_000_000).toPrecision(4)}`;
  return show(value, unit);
}

export const isDays = (values: readonly number[]): boolean =>
  values.length > 0 && values.every((value) => value % day === 0);

/** Whether a time is of the current year, so that its date needs none. */
export const isThisYear = (value: number): boolean =>
  new Date(value).getUTCFullYear() === new Date().getUTCFullYear();

/** Whether a part of the x-axis is longer than a day: then it is named by its first and last. */
export const isLong = (values: readonly number[], kind: XKind): boolean =>
  kind === 'time' && isDays(values) && values[1] - values[0] > day;

/** A part of the x-axis: "Step 7", "Mar 3, 2025", "Jul 14 – Aug 10, 2025". */
export function showPart(values: readonly number[], i: number, kind: XKind): string {
  if (!isLong(values, kind)) return showX(values[i], kind, isDays(values));
  return dates.formatRange(values[i], values[i] + values[1] - values[0] - day);
}

export function showX(value: number, kind: XKind, days = false): string {
  if (kind === 'step') return `Step ${value}`;
  if (kind === 'number')
    return Number.isInteger(value) ? format.exact(value) : String(+value.toPrecision(6));
  if (kind === 'percent') return `${value} %`;
  if (days)
    return new Date(value).toLocaleDateString('en-US', {
      month: 'short',
      day: 'numeric',
      year: isThisYear(value) ? undefined : 'numeric',
      timeZone: 'UTC',
    });
  return new Date(value).toLocaleString('en-US', {
    timeZone: format.zone(),
    hourCycle: 'h23',
    year: isThisYear(value) ? undefined : 'numeric',
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
  });
}
