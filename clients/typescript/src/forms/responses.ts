/** OpenAI's Responses API, with the history in the request. */

import type { AgentCall } from '../agent.js';
import { ofType, sent } from '../events.js';
import { isObject, type Json, objects, pick } from '../json.js';
import { type ApiForm, type Collected, type Joined, turns } from './form.js';
import { hasCredentials, isKnown, itemsOf, messageOf, storedBy, textOf, typeOf } from './items.js';

const BEGINS = new Set(['response.created', 'response.in_progress', 'response.queued']);
const ENDS = new Set(['response.completed', 'response.incomplete']);

export const RESPONSES: ApiForm = {
  format: 'responses',

  asked(request) {
    const messages = itemsOf(request.input).map(messageOf).filter(isObject);
    return {
      model: request.model,
      system: request.instructions ?? [],
      tools: toolsOf(request),
      messages: turns(messages),
      ...pick(request, ['prompt_cache_key', 'metadata']),
    };
  },

  notManaged(request) {
    const items = itemsOf(request.input);
    const stored = storedBy(request);
    if (stored) return `the provider keeps the history (${stored})`;
    if (!items.length) return 'it has no input';
    if (request.background) return 'it runs in the background';
    if (toolsOf(request).some(hasCredentials))
      return 'its tools have credentials, which must not be stored';
    const rest = items.slice(addedBy(request).length);
    const unknown = rest.map(typeOf).find((type) => !isKnown(type));
    return unknown ? `its items of type ${unknown} are not known` : '';
  },

  sent(request, managed) {
    const items: Json[] = managed.messages;
    const made: Json = { ...request, ...pick(managed, ['tools', 'tool_choice']) };
    const added = withOurs(request, made);
    made.input = [...added, ...items];
    if (!request.instructions || !items.length) return made;
    // Our server has them as the first developer message.
    if (textOf(items[0]) === request.instructions)
      return { ...made, input: [...added, ...items.slice(1)] };
    return { ...made, instructions: undefined };
  },

  reply(answer) {
    const status = answer.status ?? 'completed';
    if (!Array.isArray(answer.output) || !['completed', 'incomplete'].includes(status)) return null;
    const content = objects(answer.output).flatMap((item) => messageOf(item)?.content ?? []);
    const known = pick(answer, ['id', 'model', 'usage']);
    return content.length ? { role: 'assistant', content, ...known } : null;
  },

  shown(answers, call) {
    const output: Json[] = [];
    for (const item of answers.flatMap((answer) => objects(answer.output))) {
      if (!hides(call, item)) output.push(item);
      else if (output.at(-1)?.type === 'reasoning') output.pop();
    }
    return { ...answers.at(-1), output };
  },

  collected: () => new WholeResponse(),
  joined: (call) => new JoinedItems(call),
};

/** The items with tools that an input begins with; others are not known. Codex begins with one for
 * models that know tools only from there. */
function addedBy(request: Json): Json[] {
  const items = itemsOf(request.input);
  const end = items.findIndex((item) => typeOf(item) !== 'additional_tools');
  return end < 0 ? items : items.slice(0, end);
}

function toolsOf(request: Json): Json[] {
  return [request, ...addedBy(request)].flatMap((one) => objects(one.tools));
}

/** The items with tools; if there are any, our own tools join the last one's, and `made` keeps the
 * request's. */
function withOurs(request: Json, made: Json): Json[] {
  const added = addedBy(request);
  const last = added.pop();
  if (!last) return added;
  const known = new Set(toolsOf(request).map((tool) => JSON.stringify(tool)));
  const ours = objects(made.tools).filter((tool) => !known.has(JSON.stringify(tool)));
  if ('tools' in request) made.tools = request.tools;
  else delete made.tools;
  return [...added, { ...last, tools: [...objects(last.tools), ...ours] }];
}

function hides(call: AgentCall, item: Json): boolean {
  return item.type === 'function_call' && call.hides({ type: 'tool_use', name: item.name });
}

/** The answer in a stream, once it is complete. */
class WholeResponse implements Collected {
  answer: Json | null = null;
  readonly #items: Json[] = [];

  take(event: Json): void {
    if (event.type === 'response.output_item.done' && isObject(event.item))
      this.#items.push(event.item);
    else if (ENDS.has(event.type) && isObject(event.response)) {
      const output = this.#items.length ? this.#items : (event.response.output ?? []);
      this.answer = { ...event.response, output };
    }
  }
}

/** The events of an answer and of those that continue it, as those of one answer. */
class JoinedItems implements Joined {
  #places = new Map<number, number>();
  readonly #items: Json[] = [];
  #held: Json[] = [];
  #thinksAt = -1;
  #end: Json | null = null;
  #id: unknown;
  #number = 0;
  #isFirst = true;

  constructor(private readonly call: AgentCall) {}

  take(event: Json | null, data: string): string[] {
    if (!event) return [sent(data)];
    if (BEGINS.has(event.type)) {
      this.#id ||= event.response?.id;
      return this.#isFirst ? [this.#made(event)] : [];
    }
    if (ENDS.has(event.type)) {
      this.#end = event;
      return [];
    }
    const place: unknown = event.output_index;
    return typeof place === 'number' ? this.#ofItem(event, place) : [this.#made(event)];
  }

  #ofItem(event: Json, place: number): string[] {
    const item = isObject(event.item) ? event.item : null;
    if (event.type === 'response.output_item.added' && item) return this.#added(event, item, place);
    if (this.#held.length && place === this.#thinksAt) {
      this.#held.push(event);
      return [];
    }
    const at = this.#places.get(place);
    if (at === undefined) return [];
    if (event.type === 'response.output_item.done' && item) this.#items[at] = item;
    return [this.#made({ ...event, output_index: at })];
  }

  #added(event: Json, item: Json, place: number): string[] {
    // Without what followed it, an agent could not send its reasoning back.
    const held = hides(this.call, item) ? [] : this.#held;
    this.#held = [];
    if (item.type === 'reasoning') {
      this.#held = [event];
      this.#thinksAt = place;
      return this.#flushed(held);
    }
    if (hides(this.call, item)) return [];
    const made = this.#flushed(held);
    const at = this.#items.push(item) - 1;
    this.#places.set(place, at);
    return [...made, this.#made({ ...event, output_index: at })];
  }

  /** The events of an item that was deferred. */
  #flushed(held: Json[]): string[] {
    const output_index = this.#items.length;
    const made = held.map((event) => this.#made({ ...event, output_index }));
    const last = held.at(-1)?.item;
    if (isObject(last)) this.#items.push(last);
    return made;
  }

  #made(event: Json): string {
    if (!('sequence_number' in event)) return ofType(event);
    return ofType({ ...event, sequence_number: this.#number++ });
  }

  goesOn(): void {
    this.#places = new Map();
    this.#held = [];
    this.#end = null;
    this.#isFirst = false;
  }

  end(): string[] {
    if (!this.#end) return [];
    const made = this.#flushed(this.#held);
    let response: Json = this.#end.response ?? {};
    if (this.call.hasHidden)
      response = { ...response, id: this.#id || response.id, output: this.#items };
    return [...made, this.#made({ ...this.#end, response })];
  }
}
