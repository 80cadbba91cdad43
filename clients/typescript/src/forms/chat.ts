/** OpenAI's chat completions. */

import type { AgentCall } from '../agent.js';
import { sent } from '../events.js';
import { blocksOf, isObject, type Json, objects, pick } from '../json.js';
import { type ApiForm, argumentsOf, type Collected, type Joined, turns } from './form.js';

const DONE = '[DONE]';
const ROLES: Record<string, string> = { developer: 'system', tool: 'user', function: 'user' };
const KNOWN = ['id', 'model', 'usage'];

export const CHAT: ApiForm = {
  format: 'openai',

  asked(request) {
    return {
      model: request.model,
      system: [],
      tools: objects(request.tools),
      messages: turns(objects(request.messages).map(messageOf)),
      ...pick(request, ['metadata', 'prompt_cache_key']),
    };
  },

  notManaged(request) {
    if (!objects(request.messages).length) return 'it has no messages';
    if (request.functions?.length) return 'it uses the older `functions`';
    if ((request.n ?? 1) !== 1) return 'it asks for several answers (`n`)';
    const other = objects(request.tools).find((tool) => tool.type !== 'function');
    return other ? `it has tools of type ${String(other.type)}` : '';
  },

  sent(request, managed) {
    const made = {
      ...request,
      messages: managed.messages,
      ...pick(managed, ['tools', 'tool_choice']),
    };
    if (!request.stream) return made;
    return { ...made, stream_options: { ...request.stream_options, include_usage: true } };
  },

  reply(answer) {
    const { message } = choiceOf(answer);
    const content = isObject(message) ? saidIn(message) : [];
    return content.length ? { role: 'assistant', content, ...pick(answer, KNOWN) } : null;
  },

  shown(answers, call) {
    const last = answers[answers.length - 1] ?? {};
    const said = answers.map((answer): Json => choiceOf(answer).message ?? {});
    const calls = said.flatMap((message) => objects(message.tool_calls));
    const visible = calls.filter((one) => !hides(call, one));
    const choice = choiceOf(last);
    const message = {
      ...choice.message,
      content: said.map((one) => one.content ?? '').join('') || null,
      tool_calls: visible.length ? visible : undefined,
    };
    const finish_reason = reason(choice.finish_reason, visible.length > 0);
    return { ...last, choices: [{ ...choice, message, finish_reason }] };
  },

  collected: () => new WholeCompletion(),
  joined: (call, request) => new JoinedCompletions(call, request),
};

/** A message with its calls and results as blocks; other parts as they are. */
function messageOf(message: Json): Json {
  const role = String(message.role);
  let content = blocksOf(message.content);
  if (role === 'assistant') content = saidIn(message);
  else if (role === 'tool' || role === 'function') {
    const tool_use_id = String(message.tool_call_id ?? message.name ?? '');
    content = [{ type: 'tool_result', tool_use_id, content: message.content }];
  }
  return { role: ROLES[role] ?? role, content: content.length ? content : [text('')] };
}

/** Reasoning, text, refusal and calls of the model, in that order. */
function saidIn(message: Json): Json[] {
  const thinking: unknown = message.reasoning_content || message.reasoning;
  const blocks: Json[] = typeof thinking === 'string' ? [{ type: 'thinking', thinking }] : [];
  for (const part of blocksOf(message.content))
    blocks.push(part.type === 'refusal' ? text(part.refusal) : part);
  if (message.refusal) blocks.push(text(message.refusal));
  const calls = objects(message.tool_calls);
  if (isObject(message.function_call)) calls.push({ function: message.function_call });
  return [...blocks, ...calls.map(callOf)];
}

function text(given: unknown): Json {
  return { type: 'text', text: String(given ?? '') };
}

function callOf(call: Json): Json {
  const made: Json = call.function ?? call.custom ?? {};
  const input = argumentsOf(made.arguments ?? made.input);
  return { type: 'tool_use', id: String(call.id ?? ''), name: String(made.name ?? ''), input };
}

function choiceOf(answer: Json): Json {
  return objects(answer.choices)[0] ?? {};
}

function hides(call: AgentCall, toolCall: Json): boolean {
  return call.hides({ type: 'tool_use', name: toolCall.function?.name });
}

function reason(given: unknown, hasCalls: boolean): unknown {
  return given === 'tool_calls' && !hasCalls ? 'stop' : given;
}

/** The answer that the chunks of a stream add up to. */
class WholeCompletion implements Collected {
  #known: Json = {};
  #reason: unknown;
  readonly #message: Json = { role: 'assistant' };
  readonly #calls = new Map<number, Json>();

  take(chunk: Json): void {
    Object.assign(this.#known, pick(chunk, KNOWN));
    const choice = choiceOf(chunk);
    if ((choice.index ?? 0) !== 0) return;
    for (const [name, value] of Object.entries(choice.delta ?? {})) {
      if (name === 'tool_calls') objects(value).forEach((part) => this.#call(part));
      else if (name !== 'role' && typeof value === 'string')
        this.#message[name] = (this.#message[name] ?? '') + value;
    }
    this.#reason = choice.finish_reason ?? this.#reason;
  }

  #call(part: Json): void {
    const at: number = part.index ?? 0;
    const fresh = { id: '', type: 'function', function: { name: '', arguments: '' } };
    const call = this.#calls.get(at) ?? fresh;
    this.#calls.set(at, call);
    call.id = part.id || call.id;
    call.function.name += part.function?.name ?? '';
    call.function.arguments += part.function?.arguments ?? '';
  }

  get answer(): Json | null {
    if (!this.#reason) return null;
    const calls = this.#calls.size ? { tool_calls: [...this.#calls.values()] } : {};
    const message = { ...this.#message, ...calls };
    return { ...this.#known, choices: [{ index: 0, message, finish_reason: this.#reason }] };
  }
}

/** The chunks of an answer and of those that continue it, as those of one answer. */
class JoinedCompletions implements Joined {
  #places = new Map<number, number | null>();
  #calls = 0;
  #end: (Json | string)[] = [];
  #id: unknown;
  readonly #wantsUsage: boolean;

  constructor(
    private readonly call: AgentCall,
    request: Json,
  ) {
    this.#wantsUsage = Boolean(request.stream_options?.include_usage);
  }

  take(event: Json | null, data: string): string[] {
    if (!event) {
      if (data !== DONE) return [sent(data)];
      this.#end.push(data);
      return [];
    }
    this.#id ||= event.id;
    const chunk: Json = event.id ? { ...event, id: this.#id } : { ...event };
    const choice = choiceOf(chunk);
    if (!choice.delta && !choice.finish_reason) {
      if (this.#wantsUsage || chunk.usage == null) this.#end.push(chunk);
      return [];
    }
    if (!this.#wantsUsage) delete chunk.usage;
    let isEmpty = false;
    const delta: Json = { ...choice.delta };
    if (delta.tool_calls) {
      const visible = objects(delta.tool_calls).flatMap((part) => this.#part(part));
      isEmpty = !visible.length;
      if (isEmpty) delete delta.tool_calls;
      else delta.tool_calls = visible;
      chunk.choices = [{ ...choice, delta }];
    }
    if (choice.finish_reason) this.#end.push(chunk);
    return choice.finish_reason || isEmpty ? [] : [sent(JSON.stringify(chunk))];
  }

  #part(part: Json): Json[] {
    const at: number = part.index ?? 0;
    if (!this.#places.has(at)) this.#places.set(at, hides(this.call, part) ? null : this.#calls++);
    const index = this.#places.get(at) ?? null;
    return index === null ? [] : [{ ...part, index }];
  }

  goesOn(): void {
    this.#places = new Map();
    this.#end = [];
  }

  end(): string[] {
    return this.#end.map((one) => sent(typeof one === 'string' ? one : this.#ended(one)));
  }

  #ended(chunk: Json): string {
    const choice = choiceOf(chunk);
    if (!choice.finish_reason) return JSON.stringify(chunk);
    const finish_reason = reason(choice.finish_reason, this.#calls > 0);
    return JSON.stringify({ ...chunk, choices: [{ ...choice, finish_reason }] });
  }
}
