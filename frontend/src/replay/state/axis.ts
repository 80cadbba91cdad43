/* Where steps are from left to right: each as wide as the next, or at their times. */

export type Column = { from: number; to: number; step: number }; // pixels, and the step shown there
export type Gap = { from: number; to: number; ms: number; step: number }; // shares, and the step after it

/** Places are shares of the width. */
export type Axis = {
  /** The middle of a step's column. */
  middle(step: number): number;
  /** The step that covers a place. */
  stepAt(share: number): number;
  /** One column per step, or per pixel where steps are closer: then the fullest step shows. */
  columns(pixels: number, size: (step: number) => number): Column[];
  gaps: Gap[]; // in which nothing was called
};

const idleMs = 5 * 60_000; // between two calls; providers keep a prefix that long
const calledMs = 60_000; // what a call before such a gap is drawn as

export function stepsAxis(last: number): Axis {
  return {
    middle: (step) => (step - 0.5) / last,
    stepAt: (share) => Math.max(1, Math.min(last, Math.floor(share * last) + 1)),
    columns: (pixels, size) => columnsOf(last, pixels, size),
    gaps: [],
  };
}

function columnsOf(last: number, pixels: number, size: (step: number) => number): Column[] {
  if (last <= pixels) {
    return Array.from({ length: last }, (_, i) => ({
      from: Math.round((i * pixels) / last),
      to: Math.round(((i + 1) * pixels) / last),
      step: i + 1,
    }));
  }
  return Array.from({ length: pixels }, (_, pixel) => {
    let step = Math.floor((pixel * last) / pixels) + 1;
    for (let other = step + 1; other <= Math.floor(((pixel + 1) * last) / pixels); other++)
      if (size(other) > size(step)) step = other;
    return { from: pixel, to: pixel + 1, step };
  });
}

/** Steps at the times of their calls, gaps at their true length; null where the log has no times. */
export function timeAxis(at: readonly (number | null)[], last: number): Axis | null {
  const known = at.filter((one) => one !== null);
  if (known.length < 2 || known[0] === known.at(-1)) return null;
  // Times of calls that the log lacks, or that go back, are those of the call before.
  const starts = new Float64Array(last);
  let now = known[0]!;
  for (let i = 0; i < last; i++) starts[i] = now = Math.max(now, at[i] ?? now);
  const begin = starts[0];
  const span = Math.max(...known.map((one) => one!)) - begin;
  // The last call, and the one that is next, get as much room as a call usually takes.
  const tail = Math.min(calledMs, span / Math.max(1, last));
  const whole = span + 2 * tail;
  starts[last - 1] = Math.max(starts[last - 1], (starts[last - 2] ?? begin) + tail);
  const share = (ms: number) => (ms - begin) / whole;
  const endOf = (i: number) => (i + 1 < last ? starts[i + 1] : starts[i] + tail);
  const calledUntil = (i: number) =>
    endOf(i) - starts[i] > idleMs ? starts[i] + calledMs : endOf(i);
  const gaps: Gap[] = [];
  for (let i = 0; i + 1 < last; i++) {
    const ms = endOf(i) - starts[i];
    if (ms > idleMs)
      gaps.push({ from: share(calledUntil(i)), to: share(endOf(i)), ms, step: i + 2 });
  }
  return {
    middle: (step) => (share(starts[step - 1]) + share(calledUntil(step - 1))) / 2,
    stepAt(place) {
      let [low, high] = [0, last - 1];
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (share(starts[middle]) <= place) low = middle;
        else high = middle - 1;
      }
      return low + 1;
    },
    columns(pixels, size) {
      const made: Column[] = [];
      for (let i = 0; i < last; i++) {
        const from = Math.min(pixels - 1, Math.round(share(starts[i]) * pixels));
        const to = Math.max(from + 1, Math.round(share(calledUntil(i)) * pixels));
        const before = made.at(-1);
        if (before && before.from === from) {
          before.to = Math.max(before.to, to);
          if (size(i + 1) > size(before.step)) before.step = i + 1;
          continue;
        }
        if (before) before.to = Math.min(before.to, from);
        made.push({ from, to, step: i + 1 });
      }
      return made;
    },
    gaps,
  };
}
