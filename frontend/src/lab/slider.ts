/* How far a slider reaches: fields allow millions, which a hand cannot aim at. */
import type { Field } from './policy';

type Reach = { min: number; max: number; step: number };

/** 1, 2 or 5 times a power of ten, at least as much. */
function rounded(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return [1, 2, 5, 10].map((n) => n * power).find((one) => one >= value)!;
}

/** Whether it is a part of a whole, and no factor. */
export const isShare = (field: Field): boolean =>
  field.kind === 'float' && (field.high ?? Infinity) <= 1;

/** From the least on to some times what it begins with; what is typed beyond that stretches it. */
export function reachOf(field: Field, begins: number, now: number): Reach {
  const low = field.low ?? 0;
  const high = field.high ?? Infinity;
  if (isShare(field)) return { min: low, max: high, step: 0.01 };
  const usual = typeof field.default === 'number' ? field.default : 0;
  const fine = field.kind === 'float' ? 0.1 : 1;
  const max = Math.min(high, Math.max(rounded(Math.max(usual * 4, begins * 2, low * 2, 20)), now));
  return { min: low, max, step: max - low <= 200 ? fine : Math.max(1, rounded((max - low) / 200)) };
}

/** What keeps a number from being taken, in words; "" where nothing does. */
export function problemOf(field: Field, value: number): string {
  const low = field.low ?? 0;
  const high = field.high ?? Infinity;
  if (
    !Number.isFinite(value) ||
    (field.kind === 'int' && !Number.isInteger(value)) ||
    value < low ||
    value > high
  ) {
    return `Must be a ${field.kind === 'int' ? 'whole ' : ''}number from ${low} to ${high}.`;
  }
  return '';
}

export const inWords = (name: string): string =>
  name.replaceAll('_', ' ').replace(/^./, (letter) => letter.toUpperCase());
