/** What a session takes, and what it answers. */

import type { components, paths } from './api.js';
import type { Json } from './json.js';

type Schemas = components['schemas'];
type Of<T> = Omit<Partial<T>, 'messages'>;
type Query = NonNullable<
  paths['/api/v1/sessions/{session_id}/context']['get']['parameters']['query']
>;

/** The format of a context's messages. */
export type Format = NonNullable<Query['format']>;
/** How a context is wanted. */
export type ContextQuery = Omit<Query, 'offloads' | 'since'>;
/** One or several messages in the provider's format. */
export type Messages = object | readonly object[];
/** Fields of a session. */
export type SessionFields = Partial<Schemas['SessionIn']>;
/** What an append takes beside messages. */
export type AppendFields = Of<Schemas['MessagesIn']> & Waits;
/** What a step takes beside messages. */
export type StepFields = Of<Schemas['StepIn']>;

export interface Waits {
  /** Sleep for the recommended delay when the window is nearly full. */
  heedAdvice?: boolean;
}

/** The result of an append: how many messages were new, and the fill of the window. */
export interface Appended {
  appended: number;
  known: number;
  budget: Schemas['WindowOut'];
  /** The recommended delay before the next call. */
  delayMs: number;
  /** The whole answer. */
  raw: Schemas['DeliveredOut'];
}

/** A context to send to the model. */
export interface Context {
  /** Empty for keys that can only read. */
  id: string;
  step: number;
  tokens: number;
  /**
   * The parts that the provider expects: `system`, `tools`, `tool_choice` and `messages`, omitted
   * if empty, and `model` if known. Its type is the caller's: that of the SDK's parameters.
   */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  request: any;
  /** For the SDK's second argument: the headers without which the messages would be refused. */
  options: { headers?: Record<string, string> };
  messages: Json[];
  /** The whole answer. */
  raw: RawContext;
}

/** The server's answer; a step's says what its append did. */
export type RawContext = Schemas['ContextOut'] & {
  messages?: Json[] | null;
  appended?: Schemas['DeliveredOut'] | null;
};
