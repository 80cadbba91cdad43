import { expect, it } from 'vitest';
import { absentFrom } from '../../src/replay/context/absent';

it.each([
  [{}, 'the system prompt and the tools'],
  [{ system: '', tools: [], messages: [{ role: 'user' }] }, 'the system prompt and the tools'],
  [{ system: [], tools: [], messages: [] }, 'the system prompt and the tools'],
  [{ system: 'Be brief.', tools: [] }, 'the tools'],
  [{ messages: [{ role: 'system' }], tools: [{}] }, ''],
  [{ messages: [{ role: 'developer' }] }, 'the tools'],
  [{ tools: [{}] }, 'the system prompt'],
])('names what the log of a request lacks: %j', (request, words) => {
  expect(absentFrom(request)).toBe(words);
});
