/* Where policies stand in the picture of cost and recall. */

export type Mark = {
  name: string;
  role: 'draft' | 'active' | 'recorded' | 'oracle' | 'other' | 'tried';
  cost: number; // micro-dollars
  recall: number; // a share
};
export type Axis = { low: number; high: number; ticks: number[] };
export type Label = {
  name: string;
  x: number;
  y: number;
  side: 'right' | 'left' | 'above' | 'below';
};

/** An axis with about five round ticks around some values; `least` and `most` bound it. */
export function axisOf(values: number[], least: number, most = Infinity): Axis {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const span = Math.max(high - low, Math.abs(high) * 0.02, 1e-9);
  const rough = (span * 1.15) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((one) => one >= rough)!;
  const from = Math.max(Math.floor((low - span * 0.05) / step) * step, least);
  const to = Math.min(Math.ceil((high + span * 0.05) / step) * step, most);
  const count = Math.round((to - from) / step);
  return {
    low: from,
    high: to,
    ticks: Array.from({ length: count + 1 }, (_, i) => Math.min(from + i * step, to)),
  };
}

/** Where a value stands on an axis, in percent. */
export const at = (axis: Axis, value: number): number =>
  ((value - axis.low) / (axis.high - axis.low)) * 100;

/** The marks that no other beats on both, from the cheapest on. */
export function best<T extends Pick<Mark, 'cost' | 'recall'>>(marks: T[]): T[] {
  const found: T[] = [];
  for (const mark of [...marks].sort((a, b) => a.cost - b.cost || b.recall - a.recall))
    if (!found.length || mark.recall > found.at(-1)!.recall) found.push(mark);
  return found;
}

type Box = { left: number; right: number; top: number; bottom: number };
const letter = 6.7; // px
const line = 16; // px
const gap = 11; // px from the middle of a mark
const apart = 8; // px between two labels: less reads as one

/** Places labels beside their marks (in px, the most important first) so that none covers another; leaves out those
    that find no place. */
export function labelled(
  marks: { name: string; text: string; x: number; y: number }[],
  width: number,
  height: number,
): Label[] {
  const taken: Box[] = marks.map(({ x, y }) => ({
    left: x - 7,
    right: x + 7,
    top: y - 7,
    bottom: y + 7,
  }));
  const found: Label[] = [];
  marks.forEach(({ name, text, x, y }, own) => {
    const wide = text.length * letter;
    const boxes: [Label['side'], Box][] = [
      ['right', { left: x + gap, right: x + gap + wide, top: y - line / 2, bottom: y + line / 2 }],
      ['left', { left: x - gap - wide, right: x - gap, top: y - line / 2, bottom: y + line / 2 }],
      ['above', { left: x - wide / 2, right: x + wide / 2, top: y - gap - line, bottom: y - gap }],
      ['below', { left: x - wide / 2, right: x + wide / 2, top: y + gap, bottom: y + gap + line }],
    ];
    const free = boxes.find(
      ([, box]) =>
        box.left >= 0 &&
        box.right <= width &&
        box.top >= 0 &&
        box.bottom <= height &&
        !taken.some((one, i) => i !== own && overlap(one, box)),
    );
    if (!free) return;
    const [side, box] = free;
    taken.push({ ...box, left: box.left - apart, right: box.right + apart });
    found.push({ name, x, y, side });
  });
  return found;
}

const overlap = (a: Box, b: Box): boolean =>
  a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

/** The change from the first to the second of bars: the longest bar has the whole height, and the zero line is where
    both directions fit. Returns the zero line from the top and a height for each bar, in percent. */
export function bars(changes: number[]): { zero: number; heights: number[] } {
  const up = Math.max(0, ...changes);
  const down = Math.max(0, ...changes.map((one) => -one));
  const whole = up + down || 1;
  return {
    zero: up || down ? (up / whole) * 100 : 50,
    heights: changes.map((one) => (Math.abs(one) / whole) * 100),
  };
}
