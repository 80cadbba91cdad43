import { describe, expect, it } from 'vitest';
import { fromHash, toHash } from '../../src/lab/address';
import { Undo } from '../../src/lab/draft';
import { fromQuery, described, toQuery, wanted } from '../../src/lab/simulation/choice';
import { isSame, valueAt, withValue, type Field } from '../../src/lab/policy';
import { inWords, problemOf, reachOf, snapped } from '../../src/lab/slider';
import { changeOf, changeText } from '../../src/lab/simulation/changes';
import { compact, offload, policy } from './policies';

describe('changes', () => {
  it.each([
    [0.5, '+50 %'],
    [-0.123, '−12 %'],
    [-0.0123, '−1.2 %'],
    [0.0004, 'same'],
    [0, 'same'],
    [null, '–'],
  ] as const)('%s is %s', (change, text) => expect(changeText(change)).toBe(text));
  it('has none against nothing', () =>
    expect([changeOf(1, 0), changeOf(null, 1), changeOf(1, 2)]).toEqual([null, null, -0.5]));
});

describe('a draft', () => {
  it('changes one value and shares the rest', () => {
    const before = policy(offload(), compact());
    const after = withValue(before, 'steps[1].parameters.trigger', 0.5);
    expect(valueAt(after, 'steps[1].parameters.trigger')).toBe(0.5);
    expect(valueAt(before, 'steps[1].parameters.trigger')).toBe(0.1);
    expect(after.steps[0]).toBe(before.steps[0]);
    expect([isSame(before, after), isSame(after, withValue(after, 'name', 'other'))]).toEqual([
      false,
      true,
    ]);
    expect(isSame(before, withValue(before, 'ttl', '1h'))).toBe(false);
    expect(valueAt(before, 'steps[7].parameters.age')).toBe(undefined);
  });

  const field = (more: Partial<Field>): Field => ({
    path: 'p',
    name: 'age',
    kind: 'int',
    value: 5,
    low: 0,
    high: 10_000,
    choices: [],
    default: 5,
    label: 'Keep the newest',
    help: '',
    group: 'Tool results',
    unit: 'steps',
    zero: '',
    called: {},
    slider: [0, 20],
    advanced: false,
    objective: '',
    ...more,
  });

  it('has sliders that a hand can aim with, and that what is typed stretches', () => {
    expect(reachOf(field({}), 5, 5)).toEqual({ min: 0, max: 20, step: 1 });
    expect(reachOf(field({}), 5, 900)).toEqual({ min: 0, max: 900, step: 5 });
    expect(reachOf(field({ slider: [200, 20_000] }), 3000, 3000)).toEqual({
      min: 200,
      max: 20_000,
      step: 100,
    });
    expect(
      reachOf(field({ kind: 'float', slider: [0.05, 0.95], unit: '% full' }), 0.7, 0.7),
    ).toEqual({ min: 0.05, max: 0.95, step: 0.01 });
  });

  it.each([
    [{ unit: '% full', kind: 'float' }, 0.725, '72.5 % full'],
    [{}, 12, '12 steps'],
    [{}, 1, '1 step'],
    [{ zero: 'never' }, 0, 'never'],
    [{ kind: 'bool' }, true, 'yes'],
    [{ kind: 'choice', called: { cheap: 'cost' } }, 'cheap', 'cost'],
    [{ kind: 'words' }, [], 'none'],
  ] as [Partial<Field>, Field['value'], string][])('says %o %o as %s', (more, value, text) =>
    expect(inWords(field(more), value)).toBe(text),
  );

  it('moves by whole steps within its reach', () => {
    const reach = { min: 200, max: 20_000, step: 100 };
    expect([snapped(reach, 3047), snapped(reach, -5), snapped(reach, 1e9)]).toEqual([
      3000, 200, 20_000,
    ]);
  });

  it('undoes moves of one setting together, and others one by one', () => {
    const undo = new Undo();
    const [a, b, c] = [5, 6, 7].map((age) =>
      withValue(policy(offload()), 'steps[0].parameters.age', age),
    );
    undo.keep(a, 'age', 0);
    undo.keep(b, 'age', 100);
    undo.keep(c, 'batch', 200);
    expect([undo.back(), undo.back(), undo.back()]).toEqual([c, a, null]);
  });

  it('goes into the address and comes back, without what is unknown or cut short', () => {
    const before = policy(offload());
    const known = [field({ path: 'steps[0].parameters.age' }), field({ path: 'ttl' })];
    const hash = toHash([
      ['steps[0].parameters.age', 9],
      ['ttl', '1h'],
    ]);
    const after = fromHash(hash, before, known);
    expect([valueAt(after, 'steps[0].parameters.age'), after.ttl]).toEqual([9, '1h']);
    expect(fromHash(toHash([['name', 'x']]) + '&ttl%3D%221', before, known)).toBe(before);
    expect(toHash([])).toBe('');
  });

  it.each([
    [5, ''],
    [0, ''],
    [-1, 'from 0 to 10000'],
    [10_001, 'from 0 to 10000'],
    [1.5, 'whole'],
    [NaN, 'whole'],
  ])('takes %s or says why not', (value, why) => {
    if (why) expect(problemOf(field({}), value)).toContain(why);
    else expect(problemOf(field({}), value)).toBe('');
  });
});

describe('a choice of sessions', () => {
  it('goes into the address and comes back', () => {
    for (const choice of [
      { by: 'query', q: 'time out', flags: ['errors', 'breaks'], limit: 5 },
      { by: 'sample', agent: 'codex', n: 7, seed: 3, min_steps: 20 },
      { by: 'hand', ids: ['a', 'b'] },
    ] as const) {
      expect(fromQuery(new URLSearchParams(toQuery(choice as never).toString()))).toEqual(choice);
    }
  });

  it('leaves out what belongs to another way of choosing, and what is empty', () => {
    expect(wanted({ by: 'hand', ids: ['a'], limit: 3, q: 'x' })).toEqual({
      by: 'hand',
      ids: ['a'],
    });
    expect(wanted({ by: 'query', q: '', flags: [], limit: 3 })).toEqual({ by: 'query', limit: 3 });
  });

  it('takes nothing from an address that makes none, nor what is no number', () => {
    expect(fromQuery(new URLSearchParams('draft=p@1'))).toBe(null);
    expect(fromQuery(new URLSearchParams('by=all'))).toBe(null);
    expect(fromQuery(new URLSearchParams('by=sample&n=many&seed=2'))).toEqual({
      by: 'sample',
      seed: 2,
    });
  });

  it('says itself in words', () => {
    expect(described({ by: 'query', limit: 20 })).toBe('the newest');
    expect(described({ by: 'query', limit: 20, min_steps: 5 })).toBe(
      'the newest with 5 steps or more',
    );
    expect(described({ by: 'query', q: 'x', agent: 'codex' })).toBe(
      'the newest that match “x”, codex',
    );
    expect(described({ by: 'sample', n: 5, seed: 2, min_steps: 9 })).toBe(
      'a sample (seed 2) with 9 steps or more',
    );
    expect(described({ by: 'hand', ids: ['a', 'b'] })).toBe('2 chosen by hand');
  });
});
