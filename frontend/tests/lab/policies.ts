/* Policies for the tests of drafts. */
import type { PolicyDocument, PolicyStep } from '../../src/lab/policy';

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
