/** What the client needs to know of an API. */

import type { AgentCall } from '../agent.js';
import { isObject, type Json, parsed } from '../json.js';
import type { ManagedFormat } from '../managed.js';

/** Collects the events of a stream. */
export interface Collected {
  /** The answer that the stream adds up to; null until it is complete. */
  readonly answer: Json | null;
  take(event: Json): void;
}

/** A stream and those that continue it, as the stream of one answer. */
export interface Joined {
  /** What the agent sees of an event, given its data, too; the end is deferred. */
  take(event: Json | null, data: string): string[];
  /** Another stream follows. */
  goesOn(): void;
  /** The end of the last stream. */
  end(): string[];
}

/** How an API's requests and answers are read and written. */
export interface ApiForm {
  /** Of our server's contexts. */
  format: ManagedFormat;
  /** A request as for the Messages API. */
  asked(request: Json): Json;
  /** Why a request cannot be managed; empty if it can. */
  notManaged(request: Json): string;
  /** The request for the provider: the agent's own, with a managed context in it. */
  sent(request: Json, managed: Json): Json;
  /** An answer as one of the Messages API; null if it is none. */
  reply(answer: Json): Json | null;
  /** The answer for the agent, of all that the model gave, without what it read back. */
  shown(answers: Json[], call: AgentCall): Json;
  collected(): Collected;
  /** What joins the streams of a call, given the agent's request. */
  joined(call: AgentCall, request: Json): Joined;
}

/**
 * As `form.reply`; also null for an answer that breaks the API's own rules, which the agent gets
 * as it is.
 */
export function knownReply(form: ApiForm, answer: Json | null): Json | null {
  try {
    const found = answer && form.reply(answer);
    return found && found.content.every(isBlock) ? found : null;
  } catch {
    return null;
  }
}

function isBlock(block: unknown): boolean {
  return isObject(block) && (block.type !== 'tool_use' || typeof block.id === 'string');
}

/** Messages with those of one reply, or the results of its calls, as one. */
export function turns(messages: Json[]): Json[] {
  const made: Json[] = [];
  for (const message of messages) {
    const last = made.at(-1);
    if (last && continues(last, message))
      made[made.length - 1] = { ...last, content: [...last.content, ...message.content] };
    else made.push(message);
  }
  return made;
}

function continues(before: Json, message: Json): boolean {
  if (before.role !== message.role) return false;
  if (message.role === 'assistant') return true;
  const blocks: Json[] = [...before.content, ...message.content];
  return blocks.every((block) => block.type === 'tool_result');
}

/** The arguments of a call as an object; {"arguments": …} if they are none. */
export function argumentsOf(given: unknown): Json {
  if (isObject(given)) return given;
  return (typeof given === 'string' ? parsed(given) : null) ?? { arguments: given };
}
