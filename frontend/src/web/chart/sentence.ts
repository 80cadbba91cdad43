/* A chart in one sentence: how it goes, where it is lowest and highest, how it ends. */
import type { ChartProps, Series } from './chart';
import { isLong, show, showPart } from './values';

const level = 0.05; // of the range: less than this between the ends is no trend

type Known = { i: number; value: number };
const known = (series: Series): Known[] =>
  series.values.flatMap((value, i) => (value === null ? [] : [{ i, value }]));

const middle = (of: readonly Known[]): number => {
  const sorted = of.map((one) => one.value).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
};

/** By the medians of the first and the last third, so that one odd point makes no trend. */
export function trend(series: Series): 'rises' | 'falls' | 'stays level' | null {
  const points = known(series);
  if (points.length < 3) return null;
  const third = Math.max(1, Math.floor(points.length / 3));
  const values = points.map((one) => one.value);
  const by = middle(points.slice(-third)) - middle(points.slice(0, third));
  const reach = Math.max(...values.map(Math.abs));
  if (Math.abs(by) <= reach * level) return 'stays level';
  return by > 0 ? 'rises' : 'falls';
}

function described(series: Series, props: ChartProps): string {
  const points = known(series);
  if (!points.length) return `${series.label}: no values`;
  const before = isLong(props.x.values, props.x.kind) ? 'in' : 'at';
  const at = (point: Known) => `${before} ${xText(props, point.i)}`;
  const last = points[points.length - 1];
  if (points.length === 1) return `${series.label}: ${show(last.value, series.unit)} ${at(last)}`;
  const most = points.reduce((best, point) => (point.value > best.value ? point : best));
  const going = trend(series);
  const start = going ? `${series.label} ${going}` : `${series.label} has ${points.length} values`;
  const least = points.reduce((best, point) => (point.value < best.value ? point : best));
  const ends = going === 'rises' ? most : going === 'falls' ? least : null;
  const [low, high] = [show(least.value, series.unit), show(most.value, series.unit)];
  if (going === 'stays level' && low === high) return `${start} at ${high}`;
  const ending = `last ${show(last.value, series.unit)} ${at(last)}`;
  // "Stays level" would hide a fall between its ends, "rises" one after its highest.
  if (going && ends !== last)
    return `${series.label} goes between ${low} ${at(least)} and ${high} ${at(most)}, ${ending}`;
  const peak = `${show(most.value, series.unit)} ${at(most)}`;
  return most === last
    ? `${start} to ${peak}, its highest`
    : `${start}: highest ${peak}, ${ending}`;
}

const most = 3; // series in the sentence; the table has them all

export function sentence(props: ChartProps): string {
  if (!props.series.length || !props.x.values.length) return 'There are no values yet.';
  const parts = props.series.slice(0, most).map((series) => described(series, props));
  const left = props.series.length - most;
  if (left > 0) parts.push(`and ${left} more in the table`);
  return `${parts.join('; ')}.`;
}

export const xText = (props: ChartProps, i: number): string =>
  showPart(props.x.values, i, props.x.kind);

/** What is at a point: "draft 12.3k, active 15.1k". */
export function pointText(props: ChartProps, i: number): string {
  return props.series
    .map(
      (series) =>
        `${series.label} ${series.values[i] == null ? 'no value' : show(series.values[i], series.unit)}`,
    )
    .join(', ');
}
