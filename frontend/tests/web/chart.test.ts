import { describe, expect, it } from 'vitest';
import {
  hasValues,
  placeOf,
  stacked,
  unitsOf,
  type ChartProps,
  type Series,
} from '../../src/web/chart/chart';
import { moved } from '../../src/web/chart/cursor';
import { alone, columns, range, reach, stepOf } from '../../src/web/chart/drawing';
import { best, captionOf, ordered, placed, span, ticks } from '../../src/web/chart/scatter';
import { pointText, sentence, trend, xText } from '../../src/web/chart/sentence';
import { isDays, show, showX, tick } from '../../src/web/chart/values';

const line = (label: string, values: (number | null)[], more: Partial<Series> = {}): Series => ({
  label,
  values,
  kind: 'line',
  unit: 'tokens',
  ...more,
});
const chart = (
  series: Series[],
  values = series[0].values.map((_, i) => i + 1),
  more: Partial<ChartProps> = {},
): ChartProps => ({
  title: 'Tokens',
  x: { label: 'Step', values, kind: 'step' },
  series,
  basis: 'measured',
  ...more,
});

describe('what a chart says of itself', () => {
  it('tells the trend by thirds, and nothing of two points', () => {
    expect(trend(line('a', [1, 2, 3, 4, 5, 6]))).toBe('rises');
    expect(trend(line('a', [6, 5, null, 4, 3, 2, 1]))).toBe('falls');
    expect(trend(line('a', [100, 900, 101, 100, 102, 100, 99, 101, 100]))).toBe('stays level');
    expect(trend(line('a', [0, 0, 0]))).toBe('stays level');
    expect(trend(line('a', [1, null, 2]))).toBe(null);
  });

  it('says highest and last with their places, once where they are one', () => {
    expect(sentence(chart([line('draft', [1000, 3000, 2000])]))).toBe(
      'draft goes between 1.0k at Step 1 and 3.0k at Step 2, last 2.0k at Step 3.',
    );
    expect(sentence(chart([line('draft', [1000, 2000, 3000])]))).toBe(
      'draft rises to 3.0k at Step 3, its highest.',
    );
    expect(sentence(chart([line('draft', [3000, 2000, 1000])]))).toBe(
      'draft falls: highest 3.0k at Step 1, last 1.0k at Step 3.',
    );
    expect(
      sentence(
        chart([
          line(
            'draft',
            [1, 2, 4, 5, 9, 3].map((one) => one * 1000),
          ),
        ]),
      ),
    ).toBe('draft goes between 1.0k at Step 1 and 9.0k at Step 5, last 3.0k at Step 6.');
    expect(sentence(chart([line('share', [0.975, 0.66, 0.973], { unit: 'share' })]))).toBe(
      'share goes between 66.0 % at Step 2 and 97.5 % at Step 1, last 97.3 % at Step 3.',
    );
    const weeks = [0, 1, 2].map((i) => Date.UTC(2025, 6, 14 + 28 * i));
    const recall = chart([line('recall', [0.975, 0.66, 0.973], { unit: 'share' })], weeks);
    expect(sentence({ ...recall, x: { ...recall.x, kind: 'time' } }).replace(/\s/g, ' ')).toBe(
      'recall goes between 66.0 % in Aug 11 – Sep 7, 2025 and 97.5 % in Jul 14 – Aug 10, 2025, ' +
        'last 97.3 % in Sep 8 – Oct 5, 2025.',
    );
    expect(sentence(chart([line('draft', [5, 5, 5])]))).toBe('draft stays level at 5.');
    expect(sentence(chart([line('draft', [null, 7, null])]))).toBe('draft: 7 at Step 2.');
    expect(sentence(chart([line('draft', [null, null])]))).toBe('draft: no values.');
    expect(sentence(chart([], []))).toBe('There are no values yet.');
    expect(sentence(chart('abcde'.split('').map((name) => line(name, [1, 1, 1]))))).toContain(
      'and 2 more in the table',
    );
  });

  it('names the point under the cursor, and says where nothing is known', () => {
    const props = chart([
      line('draft', [12_300, null]),
      line('cost', [57_500, 0], { unit: 'microusd' }),
    ]);
    expect([xText(props, 0), pointText(props, 0)]).toEqual(['Step 1', 'draft 12.3k, cost $0.058']);
    expect(pointText(props, 1)).toBe('draft no value, cost $0');
  });
});

describe('values', () => {
  it.each([
    [1500, 'tokens', '1.5k'],
    [0.5, 'share', '50.0 %'],
    [1, 'share', '100 %'],
    [0, 'share', '0 %'],
    [850, 'ms', '850 ms'],
    [3, 'count', '3'],
    [2.25, 'count', '2.3'],
    [null, 'count', '–'],
  ] as const)('shows %s %s as %s', (value, unit, text) => {
    expect(show(value, unit)).toBe(text);
  });

  it('writes ticks without digits that say nothing', () => {
    expect([
      tick(200_000, 'tokens'),
      tick(0.25, 'share'),
      tick(1_500_000, 'microusd'),
      tick(0, 'microusd'),
    ]).toEqual(['200k', '25 %', '$1.5', '$0']);
  });

  it('takes midnights in UTC for days', () => {
    const day = Date.UTC(2025, 2, 3);
    expect(isDays([day, day + 86_400_000])).toBe(true);
    expect(isDays([day + 1])).toBe(false);
    expect(isDays([])).toBe(false);
    expect(showX(day, 'time', true)).toBe('Mar 3, 2025');
    const today = Date.now() - (Date.now() % 86_400_000);
    expect(showX(today, 'time', true)).not.toContain(',');
    expect(showX(7, 'step')).toBe('Step 7');
  });
});

describe('drawing', () => {
  it('stacks, draws what comes first on top, and keeps unknown values', () => {
    const parts = [line('a', [1, null, 3]), line('b', [10, null, null])];
    expect(stacked(parts)).toEqual([
      [1, null, 3],
      [11, null, 3],
    ]);
    expect(columns(chart(parts, [1, 2, 3], { stack: true }))).toEqual({
      data: [
        [1, 2, 3],
        [11, null, 3],
        [1, null, 3],
      ],
      order: [1, 0],
    });
    expect(columns(chart(parts)).order).toEqual([1, 0]);
  });

  it('knows values that no line would show', () => {
    expect(alone([1, null, 2, 3, null, 4])).toEqual([0, 5]);
    expect(alone([null, null])).toEqual([]);
  });

  it('starts every scale at zero, and has one where all is nothing', () => {
    expect(range(5, 100, 'tokens')).toEqual([0, 108]);
    expect(range(0.2, 1, 'share')).toEqual([0, 1]);
    expect(range(-10, 10, 'count')).toEqual([-10.8, 10.8]);
    expect(range(null, null, 'tokens')).toEqual([0, 1]);
    expect(range(0, 0, 'microusd')).toEqual([0, 1_000_000]);
  });

  it('leaves room for bars and for marks outside the values', () => {
    expect(stepOf([1, 3, 4])).toBe(1);
    expect(stepOf([5])).toBe(1);
    expect(reach(chart([line('a', [1, 2], { kind: 'bar' })], [1, 2]))).toEqual([0.5, 2.5]);
    expect(
      reach(chart([line('a', [1, 2])], [1, 2], { marks: [{ x: 9, label: 'later' }] })),
    ).toEqual([1, 9]);
  });

  it('gives each unit a scale, once', () => {
    expect(unitsOf([line('a', []), line('b', [], { unit: 'share' }), line('c', [])])).toEqual([
      'tokens',
      'share',
    ]);
    expect(
      [0, 1, 2].map((i) =>
        placeOf([line('was', [], { dash: true }), line('a', []), line('b', [])], i),
      ),
    ).toEqual([0, 0, 1]);
    expect([hasValues(chart([line('a', [null])])), hasValues(chart([line('a', [0])]))]).toEqual([
      false,
      true,
    ]);
  });
});

describe('the cursor', () => {
  it.each([
    ['ArrowRight', -1, 0],
    ['ArrowLeft', -1, 9],
    ['ArrowRight', 9, 9],
    ['ArrowLeft', 0, 0],
    ['Home', 5, 0],
    ['End', 5, 9],
    ['PageUp', 3, 4],
    ['x', 3, null],
  ] as const)('%s from %s goes to %s', (key, now, next) => {
    expect(moved(key, now, 10)).toBe(next);
  });

  it('goes nowhere without points, and far with shift', () => {
    expect(moved('ArrowRight', 0, 0)).toBe(null);
    expect(moved('ArrowRight', 0, 100, true)).toBe(10);
  });
});

describe('a scatter', () => {
  const point = (label: string, x: number, y: number) => ({ label, x, y, group: 'g' });

  it('knows which points no other beats', () => {
    const points = [
      point('cheap', 1, 0.5),
      point('worse', 2, 0.4),
      point('good', 2, 0.9),
      point('same', 2, 0.9),
    ];
    expect(best(points).map((one) => one.label)).toEqual(['cheap', 'good', 'same']);
    expect(ordered([points[2], points[1], points[0]]).map((one) => one.label)).toEqual([
      'cheap',
      'worse',
      'good',
    ]);
  });

  it('says in a sentence what its points are', () => {
    const axes = {
      x: { label: 'cost', unit: 'microusd' as const },
      y: { label: 'needs in context', unit: 'share' as const },
    };
    const one = { label: 'a@1', x: 1_000_000, y: 0.9, group: 'draft' };
    expect(captionOf([], axes)).toBe('There are no values yet.');
    expect(captionOf([one], axes)).toBe('a@1: cost $1.00, needs in context 90.0 %.');
    const beside = [one, { ...one, label: 'b@1' }, { ...one, label: 'oracle', bound: true }];
    expect(captionOf(beside, axes)).toContain('2 points, beside oracle. Cheapest');
    expect(captionOf([one, { ...one, label: 'b@1', x: 2_000_000, y: 0.95 }], axes)).toBe(
      '2 points. Cheapest: a@1: cost $1.00, needs in context 90.0 %. ' +
        'Most needs in context: b@1: cost $2.00, needs in context 95.0 %.',
    );
  });

  it('has round ticks within its span', () => {
    expect(ticks(0, 1)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(ticks(0.13, 0.41)).toEqual([0.2, 0.3, 0.4]);
    expect(ticks(3, 3)).toEqual([3]);
    expect(span([0.9, 1], 'share')[1]).toBe(1);
    expect(span([0.5, 1.1], 'share')[1]).toBeGreaterThan(1.1);
    expect(span([5, 5], 'tokens')).toEqual([4.5, 5.5]);
  });

  it('never writes two names over each other', () => {
    const names = placed(
      Array.from({ length: 12 }, () => ({ x: 50, y: 60, wide: 40 })),
      300,
      120,
    );
    const places = names.filter((one) => one !== null).map((one) => `${one!.y} ${one!.end}`);
    expect(new Set(places).size).toBe(places.length);
    expect(names.filter((one) => one === null)).toHaveLength(2);
    const beside = placed(
      [
        { x: 50, y: 60, wide: 40 },
        { x: 70, y: 60, wide: 40 },
      ],
      300,
      120,
    );
    expect(beside[0]).toEqual({ x: 40, y: 60, end: true }); // not over the other's mark
    expect(placed([{ x: 290, y: 50, wide: 40 }], 300, 120)[0]).toEqual({
      x: 280,
      y: 50,
      end: true,
    });
  });
});
