/** Anthropic's Messages API. */

import type { AgentCall } from '../agent.js';
import { ofType, sent } from '../events.js';
import { isObject, type Json, pick, withoutNulls } from '../json.js';
import { type ApiForm, argumentsOf, type Collected, type Joined } from './form.js';

/** Fields that a delta continues. */
const TEXTS: Record<string, string> = { text_delta: 'text', thinking_delta: 'thinking' };
/** Fields that a delta brings as a whole. */
const WHOLES: Record<string, string[]> = {
  signature_delta: ['signature'],
  compaction_delta: ['content', 'encrypted_content'],
};
const ENDS = ['stop_reason', 'stop_sequence', 'stop_details', 'container'];
const LATE = ['context_management', 'input_transformations'];

export const MESSAGES: ApiForm = {
  format: 'anthropic',

  asked(request) {
    return request;
  },

  notManaged(request) {
    if (!Array.isArray(request.messages) || !request.messages.length) return 'it has no messages';
    return request.thread ? 'the provider keeps the history (`thread`)' : '';
  },

  sent(_, managed) {
    return managed;
  },

  reply(answer) {
    return Array.isArray(answer.content) ? answer : null;
  },

  shown(answers, call) {
    const last = answers[answers.length - 1] ?? {};
    return { ...last, content: call.shown, stop_reason: call.stopReason(last.stop_reason) };
  },

  collected: () => new WholeMessage(),
  joined: (call) => new JoinedMessages(call),
};

/** The message that the events of a stream add up to. */
class WholeMessage implements Collected {
  answer: Json | null = null;
  #message: Json = {};
  readonly #blocks = new Map<number, Json>();
  readonly #inputs = new Map<number, string>();

  take(event: Json): void {
    const block = this.#blocks.get(event.index ?? 0);
    if (event.type === 'message_start') this.#message = { ...event.message };
    else if (event.type === 'content_block_start') this.#start(event);
    else if (event.type === 'content_block_delta' && block) this.#grow(event.index, block, event);
    else if (event.type === 'message_delta') this.#end(event);
    else if (event.type === 'message_stop') {
      for (const [at, given] of this.#inputs) {
        const whole = this.#blocks.get(at);
        if (whole) whole.input = argumentsOf(given);
      }
      this.answer = { ...this.#message, content: [...this.#blocks.values()] };
    }
  }

  #start(event: Json): void {
    const block = { ...event.content_block };
    this.#blocks.set(event.index, block);
    if (block.type === 'fallback') this.#message.model = block.to.model;
  }

  #grow(at: number, block: Json, { delta }: Json): void {
    const text = TEXTS[delta.type];
    if (delta.type === 'input_json_delta') {
      if (delta.partial_json)
        this.#inputs.set(at, (this.#inputs.get(at) ?? '') + delta.partial_json);
    } else if (delta.type === 'citations_delta')
      block.citations = [...(block.citations ?? []), delta.citation];
    else if (text) block[text] = (block[text] ?? '') + delta[text];
    for (const name of WHOLES[delta.type] ?? []) block[name] = delta[name];
  }

  #end(event: Json): void {
    Object.assign(this.#message, pick({ ...event, ...event.delta }, [...ENDS, ...LATE]));
    // Counts are totals so far; those left out are as they were at the start.
    this.#message.usage = { ...this.#message.usage, ...withoutNulls(event.usage ?? {}) };
  }
}

/** Streams without calls of `read_back`, as the stream of one message. */
class JoinedMessages implements Joined {
  #end: Json[] = [];
  #places = new Map<number, number>();
  #blocks = 0;
  #began = false;

  constructor(private readonly call: AgentCall) {}

  take(event: Json | null, data: string): string[] {
    if (typeof event?.type !== 'string') return [sent(data)];
    if (event.type === 'message_start') {
      const began = this.#began;
      this.#began = true;
      return began ? [] : [sent(data, event.type)];
    }
    if (event.type === 'message_delta' || event.type === 'message_stop') {
      this.#end.push(event);
      return [];
    }
    return event.type.startsWith('content_block_')
      ? this.#ofBlock(event)
      : [sent(data, event.type)];
  }

  #ofBlock(event: Json): string[] {
    if (event.type === 'content_block_start' && !this.call.hides(event.content_block))
      this.#places.set(event.index, this.#blocks++);
    const index = this.#places.get(event.index);
    return index === undefined ? [] : [ofType({ ...event, index })];
  }

  goesOn(): void {
    this.#end = [];
    this.#places = new Map();
  }

  end(): string[] {
    return this.#end.map((event) => ofType(this.#ended(event)));
  }

  #ended(event: Json): Json {
    if (event.type !== 'message_delta') return event;
    const delta: Json = isObject(event.delta) ? event.delta : {};
    return { ...event, delta: { ...delta, stop_reason: this.call.stopReason(delta.stop_reason) } };
  }
}
