/* Sessions and policies for the tests of estimates. */
import type { PolicyDocument, PolicyStep } from '../../src/lab/policy';
import type { Sizes } from '../../src/lab/sizes';

export const price = { uncached: 3000, read: 300, write_5m: 3750, write_1h: 6000, output: 15_000 };
export const early = { step: 128, lag: 0, behind: 0, minimum: 1024, ttl: 600, writes: false };

/** A session in which every step brings the same; the first brings the system prompt and the task too. */
export function session(steps: number, more: Partial<Sizes> = {}): Sizes {
  const each = <T>(value: T) => Array.from({ length: steps }, () => value);
  const first = (value: number) => [value, ...Array.from({ length: steps - 1 }, () => 0)];
  return {
    id: 'a',
    title: 'a session',
    agent: 'agent',
    model: 'claude-x',
    steps,
    window: 100_000,
    window_assumed: false,
    hidden: 1000,
    price,
    rules: 'anthropic',
    cache: "Anthropic's rules",
    minimum: 1024,
    ttl: '5m',
    kept: [early, early],
    models: each(0),
    at: each(null),
    blocks: each(2),
    other: each(100).map((value, i) => (i ? value : 2000)),
    fixed: first(1500),
    users: first(500),
    tools: each([1000]).map((value, i) => (i ? value : [])),
    output: each(50),
    recorded: each(0),
    ...more,
  };
}

export const policy = (...steps: PolicyStep[]): PolicyDocument => ({
  name: 'p',
  version: 1,
  objective: 'cheap',
  ttl: 'recorded',
  reserve: 0,
  board: 0,
  task_budget: 0,
  tools: 'all',
  steps,
  recite: null,
});
export const offload = (more = {}) =>
  ({
    strategy: 'offload',
    parameters: {
      age: 2,
      batch: 1,
      unit: 'steps',
      minimum: 50,
      exclude: [],
      only: [],
      inputs: true,
      keep_failures: true,
      ...more,
    },
  }) as PolicyStep;
export const compact = (more = {}) =>
  ({
    strategy: 'compact',
    parameters: {
      trigger: 0.1,
      summary_tokens: 1000,
      user_tokens: 20_000,
      progress: 0.1,
      rearm: 0.1,
      instructions: '',
      keep_failures: false,
      ...more,
    },
  }) as PolicyStep;
export const cut = (more = {}) =>
  ({
    strategy: 'window',
    parameters: {
      primers: 1,
      recents: 4,
      trigger: 0.5,
      target: 0.25,
      budget: 20_000,
      summary_tokens: 400,
      progress: 0.1,
      rearm: 0.1,
      ...more,
    },
  }) as PolicyStep;
