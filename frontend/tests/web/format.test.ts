import { expect, it } from 'vitest';
import * as format from '../../src/web/format';

it('writes tokens', () => {
  expect(
    [0, 950, 999, 1000, 152_312, 999_940, 999_960, 1_234_567, 12_345_678].map(format.tokens),
  ).toEqual(['0', '950', '999', '1.0k', '152.3k', '999.9k', '1.00M', '1.23M', '12.3M']);
  expect([200_000, 1_000_000, 128_000, 131_072].map(format.round)).toEqual([
    '200k',
    '1M',
    '128k',
    '131.1k',
  ]);
});

it('writes changes with a sign that is not a hyphen', () => {
  expect([1700, -1700, 0].map(format.change)).toEqual(['+1.7k', '−1.7k', '0']);
  expect(format.exactChange(-12_345)).toBe('−12,345');
});

it('writes money with two digits below a dollar', () => {
  expect([0, 57_512, 4, 999_999, 31_400_000, 1_234_567_890].map(format.money)).toEqual([
    '$0',
    '$0.058',
    '$0.000004',
    '$1.00',
    '$31.40',
    '$1,234.57',
  ]);
});

it('writes times', () => {
  expect([850, 41_000, 432_000, 11_100_000].map(format.duration)).toEqual([
    '850 ms',
    '41 s',
    '7 m 12 s',
    '3 h 5 m',
  ]);
});

it('writes all of it alone as 100 %, and none of it alone as 0 %', () => {
  expect(
    [0, 0.004, 0.005, 0.5, 0.994, 0.996, 0.99999, 1, 1.001, 1.2].map((share) =>
      format.percent(share),
    ),
  ).toEqual([
    '0 %',
    '< 1 %',
    '1 %',
    '50 %',
    '99 %',
    '> 99 %',
    '> 99 %',
    '100 %',
    '> 100 %',
    '120 %',
  ]);
  expect([0, 0.0004, 0.0006, 0.996, 0.9996, 1].map((share) => format.percent(share, 1))).toEqual([
    '0 %',
    '< 0.1 %',
    '0.1 %',
    '99.6 %',
    '> 99.9 %',
    '100 %',
  ]);
});

it('writes a change as a percentage, and from tenfold on as a factor', () => {
  expect([-0.999, -0.049, -0.0004, 0.2, 8.994, 9, 26.24, 1999].map(format.relative)).toEqual([
    '−100 %',
    '−4.9 %',
    '0 %',
    '+20 %',
    '+899 %',
    '×10',
    '×27',
    '×2,000',
  ]);
});
