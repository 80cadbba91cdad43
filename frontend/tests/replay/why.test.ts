import { expect, test } from 'vitest';
import { addressFor } from '../../src/replay/manifest/why';

test.each([
  ['8417', null, '/s/1/why/?text=8417'],
  [' a b&c ', 'managed', '/s/1/why/?text=a+b%26c&run=managed'],
  ['ab', null, null],
  ['two\nlines', null, null],
  ['x'.repeat(201), null, null],
])('%j is asked for where it can be', (text, run, address) => {
  expect(addressFor('/s/1/why/', text, run)).toBe(address);
});
