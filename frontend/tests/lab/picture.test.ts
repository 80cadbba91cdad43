import { describe, expect, it } from 'vitest';
import { at, axisOf, bars, best, labelled } from '../../src/lab/frontier';
import { Lines } from '../../src/lab/stream';

describe('an axis', () => {
  it.each([
    [[36.9e6, 46.2e6, 29e6], 0, Infinity, [25e6, 30e6, 35e6, 40e6, 45e6, 50e6]],
    [[0.85, 0.944, 1], 0, 1, [0.8, 0.85, 0.9, 0.95, 1]],
    [[0.5], 0, 1, [0.495, 0.5, 0.505]],
  ])('of %j has round ticks', (values, least, most, ticks) => {
    const axis = axisOf(values, least, most);
    expect(axis.ticks.map((one) => Math.round(one * 1e6) / 1e6)).toEqual(ticks);
    expect([at(axis, axis.low), at(axis, axis.high)]).toEqual([0, 100]);
    for (const value of values) expect(value >= axis.low && value <= axis.high).toBe(true);
  });
});

it('joins the policies that no other beats on both', () => {
  const marks = [
    { cost: 3, recall: 0.9 },
    { cost: 1, recall: 0.5 },
    { cost: 2, recall: 0.4 },
    { cost: 3, recall: 0.8 },
  ];
  expect(best(marks)).toEqual([marks[1], marks[0]]);
});

it('places labels where nothing else is, and leaves out those without a place', () => {
  const mark = (name: string, x: number, y: number) => ({ name, text: 'a label', x, y });
  const found = labelled(
    [mark('a', 100, 100), mark('b', 195, 50), mark('c', 100, 104), mark('d', 100, 96)],
    200,
    200,
  );
  expect(found.map(({ name, side }) => [name, side])).toEqual([
    ['a', 'right'],
    ['b', 'left'],
    ['c', 'left'],
    ['d', 'above'],
  ]);
  expect(labelled([mark('a', 20, 8)], 40, 16)).toEqual([]);
});

it('keeps labels side by side apart, so that two do not read as one', () => {
  const wide = 6 * 6.7 + 11; // of a label with its distance from the mark
  const near = (space: number) =>
    labelled(
      [
        { name: 'active', text: 'Active', x: 60, y: 50 },
        { name: 'oracle', text: 'Oracle', x: 60 + 2 * wide + space, y: 50 },
      ],
      60 + 2 * wide + space + 25,
      100,
    ).map((one) => one.side);
  expect(near(9)).toEqual(['right', 'left']);
  expect(near(1)).toEqual(['right', 'above']);
});

it('draws changes from a common zero line', () => {
  expect(bars([3, 0, -1])).toEqual({ zero: 75, heights: [75, 0, 25] });
  expect(bars([0, 0])).toEqual({ zero: 50, heights: [0, 0] });
  expect(bars([-2]).zero).toBe(0);
});

it('reads lines whatever the pieces they come in', () => {
  const lines = new Lines();
  expect(lines.take('{"kind":"oracle","cost_mic')).toEqual([]);
  expect(lines.take('rousd":1}\n\n{"kind":"pro')).toEqual([{ kind: 'oracle', cost_microusd: 1 }]);
  expect(lines.take('blem","title":"a","detail":"b"}\n')).toHaveLength(1);
});
