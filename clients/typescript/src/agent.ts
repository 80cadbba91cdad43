/** One call of an agent, with the model calls in which the model only reads back. */

import type { Context } from './answers.js';
import { isObject, type Json, objects, withoutNulls } from './json.js';
import type { Asked, ManagedSession } from './managed.js';

const NAME = 'read_back';
/** Replies in a row that may do nothing but read back (our choice). */
const MOST = 8;

/**
 * The model calls of one call by the agent; `request` is the next to send.
 *
 * `isManaged` is false if our server did not answer: then the agent gets what the model says.
 * `shown` are the blocks that the agent sees. Replies are as for the Messages API.
 */
export class AgentCall {
  request: Json;
  headers: Record<string, string>;
  readonly shown: Json[] = [];
  hasHidden = false;
  #context: Context | null;
  #hidden: Json[] = [];
  #left = MOST;
  readonly #ours: boolean;

  private constructor(
    private readonly managed: ManagedSession,
    private readonly asked: Json,
    private readonly betas: string,
    first: Asked,
  ) {
    this.request = first.request;
    this.headers = first.headers;
    this.#context = first.context;
    // An agent that lists the tool itself answers its calls.
    this.#ours = this.isManaged && lists(first.request) && !lists(asked);
  }

  /** Ask for the context of a call. Throws what `ManagedSession.ask` throws. */
  static async of(managed: ManagedSession, asked: Json, betas: string): Promise<AgentCall> {
    return new AgentCall(managed, asked, betas, await managed.ask(asked, betas));
  }

  get isManaged(): boolean {
    return this.#context !== null;
  }

  /** Whether the agent does not see a block. */
  hides(block: Json): boolean {
    return this.#ours && block.type === 'tool_use' && block.name === NAME;
  }

  /** Store a reply; return whether the model is called again, with what it read back. */
  async again(reply: Json): Promise<boolean> {
    if (this.#context) await this.managed.keep(reply, this.#context);
    const content: Json[] = reply.content;
    const calls = content.filter((block) => this.hides(block));
    this.hasHidden ||= calls.length > 0;
    this.shown.push(...content.filter((block) => !this.hides(block)));
    if (!calls.length && !this.#hidden.length && this.managed.format === 'anthropic') return false;
    const message = { role: 'assistant', content };
    const results: Json[] = [];
    for (const call of calls) results.push(await this.managed.read(call));
    if (!calls.length || hasCall(this.shown) || !this.#left) {
      // Agents of other providers send replies back without their reasoning.
      const messages = [...this.#hidden, message];
      const place = this.asked.messages.length;
      this.managed.shown.add(place, { content: this.shown, messages, results });
      return false;
    }
    this.#left -= 1;
    await this.#goOn(message, { role: 'user', content: results });
    return true;
  }

  async #goOn(message: Json, results: Json): Promise<void> {
    this.#hidden.push(message, results);
    const sent: Json[] = this.request.messages;
    const next = await this.managed.ask(this.asked, this.betas, this.#hidden);
    this.#context = next.context;
    this.headers = next.headers;
    const content = message.content.map(withoutNulls);
    this.request = next.context
      ? next.request
      : { ...this.request, messages: [...sent, { ...message, content }, results] };
  }

  /** Why the reply for the agent stopped: not for a tool if it sees no call of one. */
  stopReason(given: unknown): unknown {
    return given === 'tool_use' && !hasCall(this.shown) ? 'end_turn' : given;
  }
}

function lists(request: Json): boolean {
  const tools = objects(request.tools);
  const functions = tools.map((tool) => tool.function).filter(isObject);
  return [...tools, ...functions].some((one) => one.name === NAME);
}

function hasCall(content: Json[]): boolean {
  return content.some((block) => block.type === 'tool_use');
}
