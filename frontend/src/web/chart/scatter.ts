/* Points in a plane: where they go, and in which order the keys visit them. */
import { show } from './values';
import type { Basis, Unit } from './chart';

export const shapes = ['circle', 'square', 'triangle', 'diamond', 'ring', 'cross'] as const;
export type Shape = (typeof shapes)[number];

export type Point = {
  x: number;
  y: number;
  label: string;
  group: string;
  url?: string;
  here?: boolean;
  /** Not one to choose: the line and the caption leave it out. */
  bound?: boolean;
};
export type Group = { name: string; shape: Shape; means?: string };

export type ScatterProps = {
  title: string;
  summary?: string;
  x: { label: string; unit: Unit };
  y: { label: string; unit: Unit };
  points: Point[];
  groups: Group[];
  basis: Basis;
  /** What the dashed line joins: points that no other beats (usual), or those that say "here". */
  line?: 'best' | 'here';
  note?: string;
};

/** Up to `count` round values within a range. */
export function ticks(low: number, high: number, count = 5): number[] {
  const rough = (high - low) / count;
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((one) => one >= rough)!;
  const first = Math.ceil(low / step - 1e-9);
  return Array.from(
    { length: Math.floor(high / step + 1e-9) - first + 1 },
    (_, i) => +((first + i) * step).toPrecision(12),
  );
}

/** A little more than the values need. Shares of a whole stay within 0 and 1, all else above 0. */
export function span(values: readonly number[], unit: Unit): [number, number] {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const aside = (high - low) * 0.12 || Math.abs(high) * 0.1 || 1;
  return [
    Math.max(0, low - aside),
    unit === 'share' && high <= 1 ? Math.min(1, high + aside) : high + aside,
  ];
}

/** By x, then by y: what an arrow key to the right goes through. */
export const ordered = (points: readonly Point[]): Point[] =>
  [...points].sort((a, b) => a.x - b.x || a.y - b.y || a.label.localeCompare(b.label));

export const described = (point: Point, { x, y }: Pick<ScatterProps, 'x' | 'y'>): string =>
  `${point.label}: ${x.label} ${show(point.x, x.unit)}, ${y.label} ${show(point.y, y.unit)}`;

/** What the points are, in a sentence; they are ordered by x. */
export function captionOf(all: readonly Point[], axes: Pick<ScatterProps, 'x' | 'y'>): string {
  const points = all.filter((one) => !one.bound);
  if (!points.length) return 'There are no values yet.';
  const [first] = points;
  if (points.length === 1) return `${described(first, axes)}.`;
  const others = all.filter((one) => one.bound).map((one) => one.label);
  const bounds = others.length ? `, beside ${others.join(' and ')}` : '';
  const most = points.reduce((best, one) => (one.y > best.y ? one : best));
  return (
    `${points.length} points${bounds}. Cheapest: ${described(first, axes)}. ` +
    `Most ${axes.y.label}: ${described(most, axes)}.`
  );
}

/** Which points no other beats: none costs no more and keeps no less (less x, more y). */
export function best(all: readonly Point[]): Point[] {
  const points = all.filter((one) => !one.bound);
  return points.filter(
    (one) =>
      !points.some(
        (other) => other.x <= one.x && other.y >= one.y && (other.x < one.x || other.y > one.y),
      ),
  );
}

export function outline(shape: Shape, r: number): string {
  if (shape === 'square') return `M${-r} ${-r}H${r}V${r}H${-r}Z`;
  if (shape === 'triangle') return `M0 ${-r * 1.2}L${r * 1.1} ${r * 0.9}H${-r * 1.1}Z`;
  if (shape === 'diamond') return `M0 ${-r * 1.3}L${r * 1.3} 0L0 ${r * 1.3}L${-r * 1.3} 0Z`;
  if (shape === 'cross') return `M${-r} ${-r}L${r} ${r}M${-r} ${r}L${r} ${-r}`;
  return `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
}

/** Heights of names that share a place: the later one moves down until it is free, or is not written (null).
    A name stands right of its point, or left of it where the right has no room. */
export function placed(
  at: readonly { x: number; y: number; wide: number }[],
  width: number,
  height: number,
): ({ x: number; y: number; end: boolean } | null)[] {
  // Names cover no other name and no mark.
  const taken = at.map(({ x, y }) => ({ left: x - 6, right: x + 6, y }));
  return at.map(({ x, y, wide }, own) => {
    const right = x + 10 + wide <= width;
    for (const shift of [0, 13, -13, 26, -26])
      for (const end of right ? [false, true] : [true]) {
        const left = end ? x - 10 - wide : x + 10;
        const line = y + shift;
        const free =
          left >= 0 &&
          line > 6 &&
          line < height - 4 &&
          !taken.some(
            (one, i) =>
              i !== own &&
              Math.abs(one.y - line) < 12 &&
              one.left < left + wide &&
              left < one.right,
          );
        if (free) {
          taken.push({ left, right: left + wide, y: line });
          return { x: end ? x - 10 : x + 10, y: line, end };
        }
      }
    return null;
  });
}
