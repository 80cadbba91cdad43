/* Values as a chart writes them: on its axes, at its cursor, in its table. */
import * as format from '../format';
import type { Unit, XKind } from './chart';

const day = 86_400_000;

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
