/* How far a slider reaches: fields allow millions, which a hand cannot aim at. */
import type { Field, Value } from './policy';

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

/** The value of the slider next to a number. */
export function snapped({ min, max, step }: Reach, value: number): number {
  const steps = Math.round((value - min) / step);
  return Math.min(max, Math.max(min, Math.round((min + steps * step) * 1000) / 1000));
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
    const scale = isShare(field) ? 100 : 1;
    return `Must be a ${field.kind === 'int' ? 'whole ' : ''}number from ${low * scale} to ${high * scale}.`;
  }
  return '';
}

/** A value as pages show it: "70 % full", "12 steps", "never", "yes". */
export function inWords(field: Field, value: Value): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.join(', ') || 'none';
  if (typeof value === 'string') return field.called[value] ?? (value || 'none');
  if (!value && field.zero) return field.zero;
  const number = isShare(field) ? Math.round(value * 1000) / 10 : value;
  const unit = value === 1 ? field.unit.replace(/s\b/, '') : field.unit;
  return `${number.toLocaleString('en-US')} ${unit}`.trim();
}
