/** Streams of a call as one stream for the agent: what the model reads back continues it. */

import type { AgentCall } from './agent.js';
import { sent } from './events.js';
import type { ApiForm, Collected, Joined } from './forms/form.js';
import { knownReply } from './forms/form.js';
import { type Json, parsed } from './json.js';

/** What the agent sees of the streams of a call; `request` is its own. */
export class Relay {
  readonly #joined: Joined;
  #collected: Collected;

  constructor(
    private readonly form: ApiForm,
    private readonly call: AgentCall,
    request: Json,
  ) {
    this.#joined = form.joined(call, request);
    this.#collected = form.collected();
  }

  /** The events for the agent; `proceed` opens a stream that continues. */
  async *events(
    first: AsyncGenerator<string>,
    proceed: () => Promise<AsyncGenerator<string>>,
  ): AsyncGenerator<string> {
    for (let data = first; ; data = await proceed()) {
      for await (const one of data) yield* this.#take(one);
      if (!(await this.#goesOn())) break;
    }
    yield* this.#joined.end();
  }

  #take(data: string): string[] {
    const event = parsed(data);
    try {
      if (event) this.#collected.take(event);
    } catch (error) {
      const kind = error instanceof Error ? error.name : 'unknown error';
      console.warn(`contextlab: an event of the model was not stored: ${kind}`);
    }
    try {
      return this.#joined.take(event, data);
    } catch {
      // Not such as the API has.
      return [sent(data, typeof event?.type === 'string' ? event.type : '')];
    }
  }

  /** Store the answer of the stream that ended; return whether another follows. */
  async #goesOn(): Promise<boolean> {
    const { answer } = this.#collected;
    this.#collected = this.form.collected();
    const reply = knownReply(this.form, answer);
    if (!reply || !(await this.call.again(reply))) return false;
    this.#joined.goesOn();
    return true;
  }
}
