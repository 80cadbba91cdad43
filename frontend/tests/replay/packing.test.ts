/* What sessions/models/record/packing.py packs: the numbers are its own for these entries. */
import { expect, test } from 'vitest';
import { unpacked, type PackedJson } from '../../src/replay/manifest/packing';
import { manifestOf } from './manifests';

const none = { label: [], before: [], after: [], kind: [], basis: [], step: [], revision: [] };
const json = (over: Partial<PackedJson>): PackedJson => ({
  ...manifestOf([], 3),
  count: 3,
  labeled_from: 1,
  later: null,
  entries: {
    count: 3,
    revisions: [0, 1],
    steps: [0, 3],
    kind: [1, 3, 3],
    tokens: [10, 20, 5],
    index: [],
    flags: [0, 0, 4],
    closed: [0, 1, 0],
    from: [1, 1, 0],
    to: [],
    edit: [],
    message: [0, 1, 0],
  },
  events: none,
  ...over,
});

test('an entry ends where its revision is, and what replaced it begins there', () => {
  const { from, to, edit, message, index } = unpacked(json({})).entries;
  expect({ from, to, edit, message, index }).toEqual({
    from: [1, 2, 3],
    to: [0, 3, 0],
    edit: [0, 0, 1],
    message: [0, 1, 1],
    index: [0, 0, 0],
  });
});

test('what came later ends an entry and follows it, or follows all', () => {
  const fresh = { kind: [3, 1], tokens: [4, 9], message: [1, 2], index: [0, 0], flags: [4, 0] };
  const { from, to, edit, closed, message } = unpacked(
    json({
      later: {
        entries: {
          ...fresh,
          position: [1, 2],
          from: [4, 4],
          to: [0, 0],
          edit: [2, 0],
          closed: [0, 0],
        },
        changed: { position: [1], edit: [1], to: [4], closed: [2] },
      },
    }),
  ).entries;
  expect({ from, to, edit, closed, message }).toEqual({
    from: [1, 2, 3, 4, 4],
    to: [0, 3, 4, 0, 0],
    edit: [0, 0, 1, 2, 0],
    closed: [0, 1, 2, 0, 0],
    message: [0, 1, 1, 1, 2],
  });
});

test('a prompt is the sum of its parts, and reads what the call before left', () => {
  const { steps } = manifestOf([], 3);
  const found = unpacked(
    json({
      steps: {
        ...steps,
        at: [1000, null, 50],
        uncached: [3, null, 3],
        write: [100, null, 20],
        read: [0, null, 100],
        prompt: [0, null, 1],
      },
      events: {
        ...none,
        step: [3],
        revision: [2],
        before: [7],
        after: [0],
        kind: ['offload'],
        basis: ['measured'],
        label: ['x'],
      },
    }),
  );
  expect(found.steps.at).toEqual([1000, null, 1050]);
  expect(found.steps.read).toEqual([0, null, 100]);
  expect(found.steps.prompt).toEqual([103, null, 124]);
  const [{ step, revision, before, after, label }] = found.events;
  expect({ step, revision, before, after, label }).toEqual({
    step: 3,
    revision: 2,
    before: 7,
    after: 124,
    label: 'x',
  });
});
