/* Rows of different heights: where each begins, from heights that were measured or are guessed. */

/** `tops[n]` is where row n begins; the last is where all end. */
export function topsOf(rows: Int32Array, height: (i: number) => number): Float64Array {
  const tops = new Float64Array(rows.length + 1);
  for (let n = 0; n < rows.length; n++) tops[n + 1] = tops[n] + height(rows[n]);
  return tops;
}

/** The row that a place lies in; the first or last for places outside. */
export function rowAt(tops: Float64Array, place: number): number {
  let low = 0;
  let high = Math.max(0, tops.length - 2);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle] <= place) low = middle;
    else high = middle - 1;
  }
  return low;
}
