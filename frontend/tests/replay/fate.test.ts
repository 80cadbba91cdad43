import { expect, test } from 'vitest';
import { fateOf, said, summarySteps } from '../../src/replay/manifest/fate';
import { decodeEntries, Flag } from '../../src/replay/manifest/manifest';
import { kindNames } from '../../src/web/kinds';

const [user, result, summary] = ['user', 'result', 'summary'].map((kind) =>
  kindNames.indexOf(kind as (typeof kindNames)[number]),
);
// A result that a stub replaces at step 3, a question that a summary at step 5 takes, one that just goes.
const entries = decodeEntries(
  {
    from: [1, 3, 1, 2, 5, 7],
    to: [3, 5, 5, 4, 0, 0],
    kind: [result, result, user, user, summary, user],
    tokens: [9, 1, 2, 2, 3, 1],
    message: [1, 1, 2, 3, 4, 5],
    index: [0, 0, 0, 0, 0, 0],
    flags: [0, Flag.replacement, 0, 0, 0, 0],
    edit: [0, 1, 0, 0, 0, 0],
    closed: [1, 2, 2, 0, 0, 0],
  },
  kindNames,
  1000,
);
const fate = (i: number, step: number) => fateOf(entries, i, step, summarySteps(entries));

test('a block is in context, offloaded to its stub, then in a summary', () => {
  expect(fate(0, 2).is).toBe('in context');
  expect(fate(0, 3)).toEqual({ is: 'offloaded', step: 3, revision: 1, stub: 1 });
  expect(fate(0, 5)).toEqual({ is: 'summarized', step: 3, revision: 1, stub: -1 });
});

test('a block that nothing stands for is lost', () => {
  expect(fate(2, 5).is).toBe('summarized');
  expect(fate(3, 4).is).toBe('lost');
});

test('what comes with the next step is the reply; stubs say nothing of their own', () => {
  expect(Array.from(said(entries, 6))).toEqual([0, 2, 3, 4, 5]);
  expect(fate(5, 6).is).toBe('reply');
  expect(Array.from(said(entries, 2, (i) => entries.kind[i] === user))).toEqual([2, 3]);
});
