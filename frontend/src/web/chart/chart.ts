/* What a chart is given, by the island's props or by another component. */

export type Unit = 'tokens' | 'microusd' | 'share' | 'count' | 'ms';
export type Basis = 'measured' | 'estimated' | 'simulated';
/** Times are ms since 1970; days where every value is midnight UTC. */
export type XKind = 'number' | 'percent' | 'time' | 'step';

export type Series = {
  label: string;
  values: (number | null)[]; // null: not known, or nothing there; never drawn as zero
  kind: 'line' | 'bar' | 'points' | 'area';
  unit: Unit;
  dash?: boolean; // what others are compared with
};

export type Mark = { x: number; label: string; url?: string };

export type ChartProps = {
  title: string;
  summary?: string; // left out: derived from the values
  x: { label: string; values: number[]; kind: XKind };
  series: Series[];
  marks?: Mark[];
  basis: Basis;
  stack?: boolean; // areas or bars stand on each other: parts of one whole
  height?: number; // px of the drawing
};

/** The units in the order in which they get a scale: the first at the left, the second at the right. */
export const unitsOf = (series: readonly Series[]): Unit[] => [
  ...new Set(series.map((one) => one.unit)),
];

/** Which of the colors and dashes is a series'; what others are compared with takes none of them. */
export const placeOf = (series: readonly Series[], index: number): number =>
  series.slice(0, index).filter((one) => !one.dash).length;

export const hasValues = (props: ChartProps): boolean =>
  props.x.values.length > 0 &&
  props.series.some((one) => one.values.some((value) => value !== null));

/** Each series on top of those before it. What is null adds nothing, and is null again where all are. */
export function stacked(series: readonly Series[]): (number | null)[][] {
  const sums: (number | null)[] = [];
  return series.map(({ values }) => {
    values.forEach((value, i) => {
      if (value !== null) sums[i] = (sums[i] ?? 0) + value;
      else sums[i] ??= null;
    });
    return [...sums];
  });
}
