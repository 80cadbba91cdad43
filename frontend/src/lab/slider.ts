/* How far a slider reaches: fields allow millions, which a hand cannot aim at. */
import type { Field } from './policy';

type Reach = { min: number; max: number; step: number };

/** The next of 1, 2, 5 times a power of ten. */
function rounded(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return [1, 2, 5, 10].map((n) => n * power).find((one) => one >= value)!;
}

/** Whether it is shown in percent. */
export const isShare = (field: Field): boolean => field.unit.startsWith('%');

/** The usual range of the setting, extended to the value it begins with and the current one. */
export function reachOf(field: Field, begins: number, now: number): Reach {
  const [min, usual] = field.slider ?? [field.low ?? 0, field.high ?? 100];
  const max = Math.max(usual, begins, now);
  if (isShare(field)) return { min, max, step: 0.01 };
  const fine = field.kind === 'float' ? 0.1 : 1;
  return { min, max, step: max - min <= 200 ? fine : Math.max(1, rounded((max - min) / 200)) };
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
