/** The link between a wrapped client and our server; our failures never reach the agent. */

import type { Context, SessionFields } from './answers.js';
import { now, sleep } from './connection.js';
import { isObject, type Json, pick } from './json.js';
import { OverBudget, Paused, Refused, Unreachable } from './problems.js';
import { type ContextLab, failedResult, type Session } from './sessions.js';
import { ShownReplies } from './shown.js';
import { endOf, StoredHistory } from './stored.js';

/** Seconds that a model call waits for a busy server before it is sent as it is. */
const PATIENCE = 10;
/**
 * Minimum seconds to bypass our server after a failure; at least ten times the duration of that
 * failure.
 */
const PAUSE = 30;
/** Seconds that a model call waits for a person to resume its session. */
const PAUSED_AT_MOST = 3600;
const PARTS = ['system', 'tools', 'messages'];

/** The format of a wrapped client's contexts. */
export type ManagedFormat = 'anthropic' | 'openai' | 'responses';

export interface Asked {
  /** The request to send; `headers` are the provider's. */
  request: Json;
  headers: Record<string, string>;
  /** Null if our server did not answer. */
  context: Context | null;
}

/**
 * A managed session for model calls: provides requests and stores replies.
 *
 * After a failure, calls bypass our server for a pause. Calls at the same time are serialized.
 * Requests are given as for the Messages API; their contexts have the parts of `format`. `shown`
 * are the replies that the agent does not know as the model said them.
 */
export class ManagedSession {
  readonly shown = new ShownReplies();
  #session: Session | null = null;
  #againAt = 0;
  #bound: Context | null = null;
  readonly #stored = new StoredHistory();
  #last: Promise<unknown> = Promise.resolve();
  readonly #server: ContextLab;

  constructor(
    server: ContextLab,
    private readonly externalId: string,
    private readonly fields: SessionFields,
    readonly format: ManagedFormat,
    private readonly pausedAtMost = PAUSED_AT_MOST,
  ) {
    this.#server = server.hurried(PATIENCE);
  }

  /**
   * The request to send instead, with its context; unchanged if our server fails.
   *
   * `betas` are the agent's own; `hidden` are later messages that it does not know. Throws
   * OverBudget, and Paused after an hour.
   */
  async ask(request: Json, betas: string, hidden: Json[] = []): Promise<Asked> {
    const begun = now();
    if (begun < this.#againAt) return this.#alone(request, betas);
    let context: Context;
    try {
      context = await this.#resumed(request, hidden);
    } catch (error) {
      // These are no failures: the team does not allow this call.
      if (error instanceof OverBudget || error instanceof Paused) throw error;
      this.#failed('the context is sent as it is', error, begun);
      return this.#alone(request, betas);
    }
    const made = { ...request };
    for (const name of PARTS) delete made[name];
    Object.assign(made, pick(context.request, PARTS));
    // The caller's own choice takes precedence.
    made.tool_choice ??= context.request.tool_choice;
    this.#bound = context.raw.betas?.length ? context : null;
    return { ...this.#alone(made, betas), context };
  }

  /**
   * A request for the provider without us: what the model thought after contexts of ours is not
   * bound to the agent's own history.
   */
  #alone(request: Json, betas: string): Asked {
    return { ...binding(request, betas, this.#bound), context: null };
  }

  /** The context, once the session is not paused. Throws Paused after `pausedAtMost`. */
  async #resumed(request: Json, hidden: Json[]): Promise<Context> {
    const end = now() + this.pausedAtMost;
    for (let waits = false; ; waits = true) {
      try {
        return await this.#inTurn(() => this.#context(request, hidden));
      } catch (error) {
        if (!(error instanceof Paused) || now() >= end) throw error;
        if (!waits) console.warn(`contextlab: the model call waits: ${error.message}`);
        await sleep(error.retryAfter);
      }
    }
  }

  async #context(request: Json, hidden: Json[]): Promise<Context> {
    const fields = { model: request.model, ...this.fields };
    this.#session ??= await this.#server.session(this.externalId, fields);
    // Send empty values, too: they mean that a call has no tools.
    const parts = { system: request.system ?? [], tools: request.tools ?? [] };
    const messages = [...this.shown.restored(request.messages), ...hidden];
    const session = this.#session;
    return this.#stored.send(messages, parts, (given, more) =>
      session.sharedStep(given, { format: this.format, ...more }),
    );
  }

  /** Store the model's reply. */
  async keep(reply: Json, context: Context): Promise<void> {
    const begun = now();
    try {
      await this.#inTurn(() =>
        this.#stored.append({ role: 'assistant', content: reply.content }, async () =>
          endOf((await this.#session?.answer(reply, context))?.raw),
        ),
      );
    } catch (error) {
      this.#failed('the answer was not stored', error, begun);
    }
  }

  /** The result of a call of `read_back`; an error for the model if our server fails. */
  async read(call: Json): Promise<Json> {
    const begun = now();
    if (begun >= this.#againAt && this.#session) {
      try {
        return await this.#session.readBackResult(call);
      } catch (error) {
        this.#failed('content was not read back', error, begun);
      }
    }
    return failedResult(call.id, 'The content cannot be read at the moment. Go on without it.');
  }

  /** Warn, and bypass the server for a while unless it refused quickly. */
  #failed(what: string, error: unknown, begun: number): void {
    const refused = error instanceof Refused;
    // The text of other errors may contain what an agent said.
    const known = refused || error instanceof Unreachable;
    const why = known ? error.message : error instanceof Error ? error.name : 'unknown error';
    console.warn(`contextlab: ${what}: ${why}`);
    if (!refused) this.#againAt = now() + Math.max(PAUSE, 10 * (now() - begun));
  }

  /** One after another, as the agent called. */
  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const made = this.#last.then(act, act);
    this.#last = made.catch(() => undefined);
    return made;
  }
}

/**
 * What makes the provider drop thinking that is no longer valid, and not refuse the request.
 *
 * A request without thinking drops it anyway.
 */
function binding(request: Json, betas: string, context: Context | null): Omit<Asked, 'context'> {
  if (!context) return { request, headers: {} };
  const all = [...betas.split(',').map((one) => one.trim()), ...(context.raw.betas ?? [])];
  const headers = { 'anthropic-beta': [...new Set(all)].filter(Boolean).join(',') };
  const own: unknown = request.thinking ?? { type: 'adaptive' };
  const more = context.raw.thinking;
  if (!more || !isObject(own) || own.type === 'disabled') return { request, headers };
  return { request: { ...request, thinking: { ...more, ...own } }, headers };
}
