import { describe, expect, it } from 'vitest';
import { fromQuery, told, toQuery, wanted } from '../src/islands/lab/choice';
import { estimate, isRough, notEstimated, STUB } from '../src/islands/lab/estimate';
import { longest, type Sizes } from '../src/islands/lab/sizes';
import { isSame, valueAt, withValue, type Field, type PolicyDocument, type PolicyStep } from '../src/islands/lab/policy';
import { problemOf, reachOf } from '../src/islands/lab/slider';
import { rulesInWords } from '../src/islands/lab/rules';
import { changeOf, changeText, recorded, totalsOf } from '../src/islands/lab/totals';

const price = { fresh: 3000, read: 300, write_5m: 3750, write_1h: 6000, output: 15_000 };
const early = { step: 128, lag: 0, behind: 0, minimum: 1024, lifetime: 600, writes: false };

/** A session in which every step brings the same; the first brings the system prompt and the task too. */
function session(steps: number, more: Partial<Sizes> = {}): Sizes {
  const each = <T>(value: T) => Array.from({ length: steps }, () => value);
  const first = (value: number) => [value, ...Array.from({ length: steps - 1 }, () => 0)];
  return {
    id: 'a', title: 'a session', agent: 'agent', model: 'claude-x', steps, window: 100_000, window_assumed: false, hidden: 1000, price, rules: 'anthropic', minimum: 1024, lifetime: '5m', kept: [early, early],
    models: each(0), at: each(null), blocks: each(2), other: each(100).map((value, i) => (i ? value : 2000)), fixed: first(1500), users: first(500),
    tools: each([1000]).map((value, i) => (i ? value : [])), output: each(50), recorded: each(0), ...more,
  };
}

const policy = (...steps: PolicyStep[]): PolicyDocument => ({ name: 'p', version: 1, objective: 'cheap', lifetime: 'recorded', reserve: 0, steps, recite: null });
const offload = (more = {}) => ({ strategy: 'offload', parameters: { age: 2, batch: 1, unit: 'steps', minimum: 50, exclude: [], only: [], inputs: true, keep_failures: true, ...more } }) as PolicyStep;
const compact = (more = {}) => ({ strategy: 'compact', parameters: { trigger: 0.1, summary_tokens: 1000, user_tokens: 20_000, progress: 0.1, rearm: 0.1, instructions: '', keep_failures: false, ...more } }) as PolicyStep;
const cut = (more = {}) => ({ strategy: 'window', parameters: { primers: 1, recents: 4, trigger: 0.5, target: 0.25, budget: 20_000, summary_tokens: 400, progress: 0.1, rearm: 0.1, ...more } }) as PolicyStep;

describe('what stands, step by step', () => {
  it('is all that arrived, where nothing acts', () => {
    const { prompts, sent, peak, compactions, edits } = estimate(session(3), policy());
    expect(prompts).toEqual([3000, 4100, 5200]);
    expect({ sent, peak, compactions, edits }).toEqual({ sent: 12_300, peak: 5200, compactions: 0, edits: 0 });
  });

  it('loses tool texts that are older than the age, in batches', () => {
    const saved = 1000 - STUB;
    // Step 4 offloads up to step 2, step 5 up to step 3.
    expect(estimate(session(5), policy(offload())).prompts).toEqual([3000, 4100, 5200, 6300 - saved, 7400 - 2 * saved]);
    expect(estimate(session(5), policy(offload({ batch: 2 }))).prompts).toEqual([3000, 4100, 5200, 6300, 7400 - 2 * saved]);
    expect(estimate(session(5), policy(offload({ minimum: 2000 }))).edits).toBe(0);
  });

  it('never loses what the last step brought', () => {
    expect(estimate(session(3), policy(offload({ age: 0 }))).prompts).toEqual([3000, 4100, 5200 - (1000 - STUB)]);
  });

  it('counts age in human messages where the policy does', () => {
    const talks = session(6, { users: [500, 0, 0, 100, 0, 100] });
    const { edits } = estimate(talks, policy(offload({ unit: 'turns', age: 1, batch: 1 })));
    expect(edits).toBe(2); // at the second and the third message
  });

  it('becomes a summary at the trigger; instructions and what people said stay', () => {
    const { prompts, compactions } = estimate(session(8), policy(compact()));
    // 10,000 tokens are reached at step 8: 1,000 hidden, 2,000 at first, then 1,100 a step.
    expect(prompts.slice(0, 7)).toEqual([3000, 4100, 5200, 6300, 7400, 8500, 9600]);
    expect(prompts[7]).toBe(1000 + 1500 + 500 + 500 + 1100); // half of the summary's most, and the step itself
    expect(compactions).toBe(1);
  });

  it('tries no compaction that wins too little, nor again before it has grown', () => {
    expect(estimate(session(30, { fixed: [9800, ...Array(29).fill(0)], other: [9900, ...Array(29).fill(100)], users: Array(30).fill(0) }), policy(compact())).compactions).toBe(0);
    expect(estimate(session(60), policy(compact({ rearm: 0.9 }))).compactions).toBe(1);
  });

  it('is cut to a window between its first and its newest messages', () => {
    const { prompts, compactions } = estimate(session(9), policy(cut()));
    expect(prompts[7]).toBe(10_700);
    // The conversation has 10,800 at step 9: of those, 2,000 and the newest three steps stay, and a note of 320.
    expect(compactions).toBe(1);
    expect(prompts[8]).toBeLessThan(7000);
    expect(prompts[8]).toBeGreaterThan(1000 + 2000 + 320);
  });

  it('says what of a policy it cannot tell from sizes', () => {
    expect(notEstimated(policy(offload(), compact()))).toEqual([]);
    expect(notEstimated({ ...policy({ strategy: 'dedupe', parameters: {} }, offload({ only: ['Read'] }), offload({ inputs: false })), recite: {} })).toEqual(['dedupe', 'offload of some tools only', 'that inputs stay', 'recite']);
    expect(estimate(session(5), policy(offload({ only: ['Read'] }))).edits).toBe(0);
    expect(notEstimated(policy({ strategy: 'payback', parameters: {} }, compact({ on_new_topic: true, on_task_done: true }), cut({ messages: 30 })))).toEqual(['payback', 'compaction at a new topic', 'compaction once a task is done', 'a limit of messages']);
    expect([[compact({ on_new_topic: true })], [cut({ messages: 30 })], [{ strategy: 'payback', parameters: {} }], [{ strategy: 'shard', parameters: {} }]].map((steps) => isRough(policy(...steps)))).toEqual([false, true, true, false]);
    expect([[offload()], [{ strategy: 'dedupe', parameters: {} }], [offload({ only: ['Read'] })]].map((steps) => isRough(policy(...steps)))).toEqual([false, false, true]);
  });
});

describe('what it costs', () => {
  const dollars = (nanos: number) => Math.round(nanos / 1000);

  it('reads what stood and writes what is new', () => {
    const { cost, read } = estimate(session(2), policy());
    expect(read).toBe(3000);
    expect(cost).toBe(dollars(3000 * 3750 + 50 * 15_000 + 3000 * 300 + 1100 * 3750 + 50 * 15_000));
  });

  it('writes again all that follows an edit', () => {
    // At step 4 what came at step 2 changes: 3,000 before it are read.
    expect(estimate(session(4), policy(offload())).read).toBe(3000 + 4100 + 3000);
  });

  it('finds only the hidden prompt where more than 20 blocks changed, but for caches without breakpoints', () => {
    const wide = { blocks: Array(4).fill(30) };
    expect(estimate(session(4, wide), policy(offload())).read).toBe(3000 + 4100 + 0); // 1,000 hidden are below the minimum
    expect(estimate(session(4, { ...wide, rules: 'openai' }), policy(offload())).read).toBe(2944 + 4096 + 2944);
  });

  it('reads nothing after the lifetime, nor of another model', () => {
    expect(estimate(session(2, { at: [0, 300_000] }), policy()).read).toBe(3000);
    expect(estimate(session(2, { at: [0, 300_001] }), policy()).read).toBe(0);
    expect(estimate(session(3, { models: [0, 1, 0] }), policy()).read).toBe(3000);
  });

  const under = (lifetime: PolicyDocument['lifetime']): PolicyDocument => ({ ...policy(), lifetime });

  it('keeps entries as long as the policy asks, and pays for it', () => {
    const at = { at: [0, 300_001], hidden: 1500 }; // prompts of 3,500 and 4,600
    expect(['recorded', '5m', '1h', 'mixed'].map((lifetime) => estimate(session(2, at), under(lifetime as never)).read)).toEqual([0, 0, 3500, 1500]);
    expect(estimate(session(2, { ...at, lifetime: '1h' }), under('recorded')).read).toBe(3500);
    const written = 2 * 50 * 15_000;
    expect(estimate(session(2, at), under('1h')).cost).toBe(dollars(3500 * 6000 + 3500 * 300 + 1100 * 6000 + written));
    expect(estimate(session(2, at), under('mixed')).cost).toBe(dollars(1500 * 6000 + 2000 * 3750 + 1500 * 300 + 3100 * 3750 + written));
    expect(estimate(session(2, { at: [0, 300_001] }), under('mixed')).read).toBe(0); // 1,000 hidden are below the minimum
    expect(recorded(session(2, { recorded: [3000, 4100], at: [0, 300_001] })).read).toBe(0);
  });

  it('follows automatic caches by their steps, lags, lifetimes and what writing costs, model by model', () => {
    const late = { step: 1024, lag: 256, behind: 0, minimum: 1024, lifetime: 1800, writes: true };
    const gpt = { rules: 'openai' as const, kept: [late] };
    expect(estimate(session(2, gpt), policy())).toMatchObject({ read: 2816, cost: dollars(3000 * 3750 + 2816 * 300 + 1284 * 3750 + 2 * 50 * 15_000) });
    expect(estimate(session(2, { ...gpt, kept: [early] }), under('1h')).cost).toBe(dollars(3000 * 3000 + 2944 * 300 + 1156 * 3000 + 2 * 50 * 15_000));
    expect([1_800_000, 1_800_001].map((ms) => estimate(session(2, { ...gpt, at: [0, ms] }), policy()).read)).toEqual([2816, 0]);
    const gemini = { step: 4096, lag: 0, behind: 0, minimum: 4096, lifetime: 3600, writes: false };
    expect(estimate(session(4, { rules: 'gemini', kept: [{ ...gemini, behind: 1000 }] }), policy()).read).toBe(4096);
    expect(estimate(session(4, { rules: 'gemini', kept: [gemini] }), policy()).read).toBe(4096 + 4096);
    expect(estimate(session(2, { rules: 'prefix', kept: [{ ...gemini, step: 64, minimum: 64 }] }), policy()).read).toBe(2944);
    expect(estimate(session(2, { rules: 'none' }), policy())).toMatchObject({ read: 0, cost: dollars(7100 * 3000 + 2 * 50 * 15_000) });
    expect(estimate(session(3, { ...gpt, kept: [early, late], models: [0, 1, 1] }), policy()).read).toBe(3840);
  });

  it('says of each model by whose rules, and how long its entries live', () => {
    const all = [session(2), session(2), session(2, { model: 'gpt-5', rules: 'openai' }), session(2, { model: 'x', rules: 'unknown', price: null }), session(2, { model: 'glm', rules: 'prefix', kept: [{ ...early, lifetime: 3600 }] })];
    const [claude, gpt, other, glm] = rulesInWords(all, 'mixed');
    expect(claude).toBe("claude-x, 2 sessions: Anthropic's rules; tools and system prompt live an hour, the rest 5 minutes, as the draft asks.");
    expect(gpt).toContain("gpt-5, 1 session: OpenAI's automatic cache; up to 10 minutes");
    expect(other).toContain('it counts for tokens only');
    expect(glm).toContain('for an hour, is assumed');
    expect(rulesInWords(all, 'recorded')[0]).toContain('entries live 5 minutes, as recorded');
  });

  it('takes dearer rates for long prompts, and none where nobody knows them', () => {
    const dearer = { ...price, dearer: [[4000, { ...price, write_5m: 7500, output: 0, read: 600 }]] } as Sizes['price'];
    expect(estimate(session(2, { price: dearer }), policy()).cost).toBe(dollars(3000 * 3750 + 50 * 15_000 + 3000 * 600 + 1100 * 7500));
    expect(estimate(session(2, { price: null }), policy())).toMatchObject({ cost: null, read: 3000 });
    expect(estimate(session(2, { rules: 'unknown' }), policy())).toMatchObject({ cost: null, read: null });
  });

  it('adds up sessions, with the cost of those that have one', () => {
    const some = [estimate(session(2), policy()), estimate(session(3, { price: null }), policy())];
    const totals = totalsOf(some);
    expect(totals).toMatchObject({ sent: 7100 + 12_300, peak: 5200, cost: some[0].cost, priced: 1 });
    expect(totals.read).toBeCloseTo((3000 + 7100) / 19_400);
    expect(totalsOf([])).toMatchObject({ sent: 0, cost: null, read: null });
  });

  it('takes a recording as its log shows it', () => {
    const lived = recorded(session(3, { recorded: [3000, 9000, 4000] }));
    expect(lived).toMatchObject({ sent: 16_000, peak: 9000, compactions: 1, edits: 1 });
    expect(lived.read).toBe(3000 + 3000);
  });
});

describe('changes', () => {
  it.each([[0.5, '+50 %'], [-0.123, '−12 %'], [-0.0123, '−1.2 %'], [0.0004, 'same'], [0, 'same'], [null, '–']] as const)('%s is %s', (change, text) => expect(changeText(change)).toBe(text));
  it('has none against nothing', () => expect([changeOf(1, 0), changeOf(null, 1), changeOf(1, 2)]).toEqual([null, null, -0.5]));
});

describe('a draft', () => {
  it('changes one value and shares the rest', () => {
    const before = policy(offload(), compact());
    const after = withValue(before, 'steps[1].parameters.trigger', 0.5);
    expect(valueAt(after, 'steps[1].parameters.trigger')).toBe(0.5);
    expect(valueAt(before, 'steps[1].parameters.trigger')).toBe(0.1);
    expect(after.steps[0]).toBe(before.steps[0]);
    expect([isSame(before, after), isSame(after, withValue(after, 'name', 'other'))]).toEqual([false, true]);
    expect(isSame(before, withValue(before, 'lifetime', '1h'))).toBe(false);
    expect(valueAt(before, 'steps[7].parameters.age')).toBe(undefined);
  });

  const field = (more: Partial<Field>): Field => ({ path: 'p', name: 'age', kind: 'int', value: 5, low: 0, high: 10_000, choices: [], default: 5, help: '', ...more });

  it('has sliders that a hand can aim with, and that what is typed stretches', () => {
    expect(reachOf(field({}), 5, 5)).toEqual({ min: 0, max: 20, step: 1 });
    expect(reachOf(field({}), 5, 900)).toEqual({ min: 0, max: 900, step: 5 });
    expect(reachOf(field({ low: 200, high: 50_000, default: 3000 }), 3000, 3000)).toEqual({ min: 200, max: 20_000, step: 100 });
    expect(reachOf(field({ kind: 'float', low: 0.05, high: 0.95, default: 0.7 }), 0.7, 0.7)).toEqual({ min: 0.05, max: 0.95, step: 0.01 });
  });

  it.each([[5, ''], [0, ''], [-1, 'from 0 to 10000'], [10_001, 'from 0 to 10000'], [1.5, 'whole'], [NaN, 'whole']])('takes %s or says why not', (value, why) => {
    if (why) expect(problemOf(field({}), value)).toContain(why);
    else expect(problemOf(field({}), value)).toBe('');
  });
});

describe('a choice of sessions', () => {
  it('goes into the address and comes back', () => {
    for (const choice of [{ by: 'query', q: 'time out', flags: ['errors', 'breaks'], limit: 5 }, { by: 'sample', agent: 'codex', n: 7, seed: 3, min_steps: 20 }, { by: 'hand', ids: ['a', 'b'] }] as const) {
      expect(fromQuery(new URLSearchParams(toQuery(choice as never).toString()))).toEqual(choice);
    }
  });

  it('leaves out what belongs to another way of choosing, and what is empty', () => {
    expect(wanted({ by: 'hand', ids: ['a'], limit: 3, q: 'x' })).toEqual({ by: 'hand', ids: ['a'] });
    expect(wanted({ by: 'query', q: '', flags: [], limit: 3 })).toEqual({ by: 'query', limit: 3 });
  });

  it('takes nothing from an address that makes none, nor what is no number', () => {
    expect(fromQuery(new URLSearchParams('draft=p@1'))).toBe(null);
    expect(fromQuery(new URLSearchParams('by=all'))).toBe(null);
    expect(fromQuery(new URLSearchParams('by=sample&n=many&seed=2'))).toEqual({ by: 'sample', seed: 2 });
  });

  it('says itself in words', () => {
    expect(told({ by: 'query', limit: 20 })).toBe('the newest');
    expect(told({ by: 'query', limit: 20, min_steps: 5 })).toBe('the newest with 5 steps or more');
    expect(told({ by: 'query', q: 'x', agent: 'codex' })).toBe('the newest that match “x”, codex');
    expect(told({ by: 'sample', n: 5, seed: 2, min_steps: 9 })).toBe('a sample (seed 2) with 9 steps or more');
    expect(told({ by: 'hand', ids: ['a', 'b'] })).toBe('2 chosen by hand');
  });
});

it('draws the longest session first, the first of those that are as long', () => {
  expect([longest([{ steps: 1 }, { steps: 9 }, { steps: 9 }]), longest([])]).toEqual([1, 0]);
});
