/* Rectangles whose areas are as their sizes, as square as they can be (squarified treemap). */

export type Box = { x: number; y: number; width: number; height: number };

/** One box per size, in the order of the sizes, which must fall and be above zero. */
export function squarify(sizes: readonly number[], within: Box): Box[] {
  const sum = sizes.reduce((all, size) => all + size, 0);
  const boxes: Box[] = [];
  if (!sum || within.width <= 0 || within.height <= 0)
    return sizes.map(() => ({ x: within.x, y: within.y, width: 0, height: 0 }));
  const scale = (within.width * within.height) / sum;
  let { x, y, width, height } = within;
  for (let from = 0; from < sizes.length;) {
    const side = Math.min(width, height);
    let [to, area] = [from + 1, sizes[from] * scale];
    // A row takes more boxes as long as its worst one gets squarer.
    while (to < sizes.length) {
      const more = area + sizes[to] * scale;
      if (worst(sizes, from, to + 1, more, side, scale) > worst(sizes, from, to, area, side, scale))
        break;
      area = more;
      to++;
    }
    const depth = side ? area / side : 0;
    let along = 0;
    for (let n = from; n < to; n++) {
      const length = depth ? (sizes[n] * scale) / depth : 0;
      boxes.push(
        width >= height
          ? { x, y: y + along, width: depth, height: length }
          : { x: x + along, y, width: length, height: depth },
      );
      along += length;
    }
    if (width >= height) [x, width] = [x + depth, Math.max(0, width - depth)];
    else [y, height] = [y + depth, Math.max(0, height - depth)];
    from = to;
  }
  return boxes;
}

/** How far the least square box of a row is from a square, 1 for a square. */
function worst(
  sizes: readonly number[],
  from: number,
  to: number,
  area: number,
  side: number,
  scale: number,
): number {
  const square = side * side;
  const [most, least] = [sizes[from] * scale, sizes[to - 1] * scale];
  return Math.max((square * most) / (area * area), (area * area) / (square * least));
}
