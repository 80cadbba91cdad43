/**
 * A small client for agents: send messages, take the managed context, report usage.
 *
 * Needs only `fetch`: Node 20 or newer, and browsers.
 */

export type * from './answers.js';
export type { components, paths } from './api.js';
export type { Address, Answer, Given, Options } from './connection.js';
export {
  Misaddressed,
  NotManaged,
  OverBudget,
  Paused,
  type Problem,
  Refused,
  Unreachable,
} from './problems.js';
export { ContextLab, Session } from './sessions.js';
export { wrap, type WrapOptions } from './wrapped.js';
