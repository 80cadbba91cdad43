import { expect, test } from 'vitest';
import { rowAt, topsOf } from '../../src/replay/context/heights';
import { squarify } from '../../src/replay/context/treemap';

test('boxes have the areas of their sizes and fill the whole', () => {
  const sizes = [6, 6, 4, 3, 2, 2, 1];
  const boxes = squarify(sizes, { x: 10, y: 0, width: 600, height: 400 });
  const scale = (600 * 400) / 24;
  boxes.forEach((box, n) => {
    expect(box.width * box.height).toBeCloseTo(sizes[n] * scale, 3);
    expect(box.x).toBeGreaterThanOrEqual(10);
    expect(box.x + box.width).toBeLessThanOrEqual(610.001);
    expect(box.y + box.height).toBeLessThanOrEqual(400.001);
    expect(Math.max(box.width / box.height, box.height / box.width)).toBeLessThan(3);
  });
});

test('nothing has no area', () => {
  expect(squarify([], { x: 0, y: 0, width: 9, height: 9 })).toEqual([]);
  expect(squarify([1], { x: 0, y: 0, width: 0, height: 9 })[0].width).toBe(0);
});

test('a place lies in the row that covers it', () => {
  const tops = topsOf(Int32Array.of(4, 5, 6), (i) => i * 10);
  expect(Array.from(tops)).toEqual([0, 40, 90, 150]);
  expect([-5, 0, 39, 40, 89, 90, 999].map((place) => rowAt(tops, place))).toEqual([
    0, 0, 0, 1, 1, 2, 2,
  ]);
  expect(
    rowAt(
      topsOf(new Int32Array(0), () => 1),
      50,
    ),
  ).toBe(0);
});
