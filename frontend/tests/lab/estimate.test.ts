import { describe, expect, it } from 'vitest';
import { estimate, isRough, notEstimated, STUB } from '../../src/lab/estimate';
import { cut, compact, offload, policy, session } from './sessions';

describe('what stands, step by step', () => {
  it('is all that arrived, where nothing acts', () => {
    const { prompts, sent, peak, compactions, edits } = estimate(session(3), policy());
    expect(prompts).toEqual([3000, 4100, 5200]);
    expect({ sent, peak, compactions, edits }).toEqual({
      sent: 12_300,
      peak: 5200,
      compactions: 0,
      edits: 0,
    });
  });

  it('loses tool texts that are older than the age, in batches', () => {
    const saved = 1000 - STUB;
    // Step 4 offloads up to step 2, step 5 up to step 3.
    expect(estimate(session(5), policy(offload())).prompts).toEqual([
      3000,
      4100,
      5200,
      6300 - saved,
      7400 - 2 * saved,
    ]);
    expect(estimate(session(5), policy(offload({ batch: 2 }))).prompts).toEqual([
      3000,
      4100,
      5200,
      6300,
      7400 - 2 * saved,
    ]);
    expect(estimate(session(5), policy(offload({ minimum: 2000 }))).edits).toBe(0);
  });

  it('never loses what the last step brought', () => {
    expect(estimate(session(3), policy(offload({ age: 0 }))).prompts).toEqual([
      3000,
      4100,
      5200 - (1000 - STUB),
    ]);
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
    expect(
      estimate(
        session(30, {
          fixed: [9800, ...Array(29).fill(0)],
          other: [9900, ...Array(29).fill(100)],
          users: Array(30).fill(0),
        }),
        policy(compact()),
      ).compactions,
    ).toBe(0);
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
    expect(
      notEstimated({
        ...policy(
          { strategy: 'dedupe', parameters: {} },
          offload({ only: ['Read'] }),
          offload({ inputs: false }),
        ),
        recite: {},
      }),
    ).toEqual(['dedupe', 'offload of some tools only', 'that inputs stay', 'recite']);
    expect(estimate(session(5), policy(offload({ only: ['Read'] }))).edits).toBe(0);
    expect(
      notEstimated(
        policy(
          { strategy: 'payback', parameters: {} },
          compact({ on_new_topic: true, on_task_done: true }),
          cut({ messages: 30 }),
        ),
      ),
    ).toEqual([
      'payback',
      'compaction at a new topic',
      'compaction once a task is done',
      'a limit of messages',
    ]);
    expect(
      [
        [compact({ on_new_topic: true })],
        [cut({ messages: 30 })],
        [{ strategy: 'payback', parameters: {} }],
        [{ strategy: 'shard', parameters: {} }],
      ].map((steps) => isRough(policy(...steps), ['dedupe', 'shard'])),
    ).toEqual([false, true, true, false]);
    expect(
      [[offload()], [{ strategy: 'dedupe', parameters: {} }], [offload({ only: ['Read'] })]].map(
        (steps) => isRough(policy(...steps), ['dedupe', 'shard']),
      ),
    ).toEqual([false, false, true]);
  });
});
