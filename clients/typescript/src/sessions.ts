/** A server and a key, and the sessions of agents. */

import type {
  AppendFields,
  Appended,
  Context,
  ContextQuery,
  Messages,
  RawContext,
  SessionFields,
  StepFields,
  Waits,
} from './answers.js';
import type { components } from './api.js';
import { Connection, sleep } from './connection.js';
import { isObject, type Json, pick, withoutNulls } from './json.js';
import { Refused, throwIfRefused } from './problems.js';

type Schemas = components['schemas'];

const PARTS = ['system', 'tools', 'tool_choice', 'messages'];

/** One agent's session; created by `ContextLab.session`. */
export class Session {
  readonly id: string;
  readonly externalId: string;
  readonly model: string;
  /** Its page. */
  readonly url: string;
  #last: RawContext | null = null;
  readonly #path: { session_id: string };

  constructor(
    private readonly server: Connection,
    known: Json,
  ) {
    this.id = String(known.id);
    this.externalId = String(known.external_id);
    this.model = String(known.model ?? '');
    this.url = String(known.url ?? '');
    this.#path = { session_id: this.id };
  }

  /** Add one or several messages in the provider's format; all or none are stored. */
  async append(messages: Messages, fields: AppendFields = {}): Promise<Appended> {
    const { heedAdvice, ...more } = fields;
    const raw = await this.server.request('POST', 'sessions/{session_id}/messages', {
      path: this.#path,
      body: { messages: batch(messages), ...more },
    });
    const delayMs = raw.advice.delay_ms;
    if (heedAdvice && delayMs) await sleep(delayMs / 1000);
    return { appended: raw.appended, known: raw.known, budget: raw.budget, delayMs, raw };
  }

  /**
   * The managed context to send now, or as of a step.
   *
   * `wait`: seconds to wait for a summary in progress. `read_back: false` leaves out the tool
   * whose calls `readBackResult` answers.
   */
  async context(query: ContextQuery = {}): Promise<Context> {
    const address = 'sessions/{session_id}/context';
    return this.#contextOf(await this.server.request('GET', address, { path: this.#path, query }));
  }

  /**
   * Append the messages of a step and get the next context, in one request. Only what changed
   * since the last context of a step is transferred.
   */
  async step(messages: Messages = [], fields: StepFields = {}): Promise<Context> {
    return this.#contextOf(structuredClone((await this.sharedStep(messages, fields)).raw));
  }

  /**
   * Like `step`, at a cost that does not grow with the history: the next contexts contain the
   * objects of this one, which must not be changed.
   */
  async sharedStep(messages: Messages = [], fields: StepFields = {}): Promise<Context> {
    const { format = 'anthropic', ...more } = fields;
    const added = batch(messages);
    const last = this.#last?.format === format ? this.#last : null;
    const raw: RawContext = await this.server.request('POST', 'sessions/{session_id}/steps', {
      path: this.#path,
      body: {
        format,
        ...more,
        ...(added.length ? { messages: added } : {}),
        ...(last?.context_id ? { since: last.context_id } : {}),
      } as Schemas['StepIn'],
    });
    if (raw.since && last) {
      if (raw.system === null) raw.system = last.system;
      if (raw.tools === null) raw.tools = last.tools;
      raw.messages = [...(last.messages ?? []).slice(0, raw.keep), ...(raw.messages ?? [])];
    }
    this.#last = raw.context_id ? raw : null;
    return this.#contextOf(raw);
  }

  /**
   * Store the model's reply with its usage, and the context it was given: a response of
   * @anthropic-ai/sdk or openai.
   */
  async answer(reply: object, context?: Pick<Context, 'id'> | null): Promise<Appended> {
    const given = reply as Json;
    const known = {
      usage: given.usage,
      model: given.model,
      call: given.id,
      context_id: context?.id || null,
      // An empty list says that nothing was dropped.
      input_transformations: given.input_transformations,
    };
    return this.append(messageOf(given), withoutNulls(known));
  }

  /**
   * Reserve what the next model call may spend, under your own id; its usage settles it.
   *
   * `tokens` defaults to an estimate. Repeating the id reserves nothing more. Throws OverBudget if
   * the call is refused, and Paused.
   */
  async reserve(
    call: string,
    fields: Partial<Omit<Schemas['CheckIn'], 'call'>> & Waits = {},
  ): Promise<Schemas['Checked']> {
    const { heedAdvice, ...more } = fields;
    const found = await this.server.request('POST', 'sessions/{session_id}/budgets/check', {
      path: this.#path,
      body: { call, ...more } as Schemas['CheckIn'],
    });
    for (const warning of found.warnings) console.warn(`contextlab: ${warning}`);
    throwIfRefused(found);
    if (heedAdvice && found.delay_ms) await sleep(found.delay_ms / 1000);
    return found;
  }

  /** Release the reservation of a call that will not be made, or all; return how many. */
  async release(call = ''): Promise<number> {
    const found = await this.server.request('DELETE', 'sessions/{session_id}/reservations', {
      path: this.#path,
      query: call ? { call } : {},
    });
    return found.released;
  }

  /**
   * Read an offloaded text by its reference; select with `lines: '10-40'`, `grep`, `head` or
   * `tail`.
   */
  async readBack(ref: string, selection: Json = {}): Promise<string> {
    return (await this.#content(ref, selection)).text;
  }

  /**
   * Answer the model's call of `read_back`, a `tool_use` block of a reply: a `tool_result` in
   * Anthropic's form. Images are images. What the model asked for wrongly is an error result.
   * Throws Unreachable.
   */
  async readBackResult(call: object): Promise<{
    type: 'tool_result';
    tool_use_id: string;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any
    content: any[];
    is_error?: boolean;
  }> {
    const { id, input } = call as Json;
    const { ref, ...selection } = isObject(input) ? input : {};
    const named = String(ref ?? '').trim();
    if (!named) return failedResult(id, 'ref is missing: pass the reference in the stub.');
    try {
      const { content } = await this.#content(named, selection);
      return { type: 'tool_result', tool_use_id: id, content };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return failedResult(id, String(error.problem.detail ?? error.message));
    }
  }

  #content(ref: string, query: Json): Promise<Schemas['ReadBackOut']> {
    return this.server.request('GET', 'sessions/{session_id}/content/{ref}', {
      path: { ...this.#path, ref },
      query,
    });
  }

  /** Keep a message verbatim in every context. */
  async pin(seq: number): Promise<void> {
    const address = 'sessions/{session_id}/pins';
    await this.server.request('POST', address, { path: this.#path, body: { seq } });
  }

  /**
   * Add a note to the board: task, plan, agent, knowledge or task_done. `key`: a later note under
   * it replaces this one. `files`: what it depends on.
   */
  async note(
    kind: Schemas['NoteIn']['kind'],
    text: string,
    more: Partial<Schemas['NoteIn']> = {},
  ): Promise<Schemas['NoteOut']> {
    const body = { ...more, kind, text } as Schemas['NoteIn'];
    return this.server.request('POST', 'sessions/{session_id}/notes', { path: this.#path, body });
  }

  /** The board of the session's task, or its own, as XML for a model. */
  async board(): Promise<string> {
    const address = 'sessions/{session_id}/notes';
    const given = { path: this.#path, query: { limit: 1 } };
    return (await this.server.request('GET', address, given)).xml;
  }

  /** Share current knowledge with subscribed sessions. */
  async share(summary = '', key = ''): Promise<Schemas['ShareOut']> {
    const body = { summary, key } as Schemas['ShareIn'];
    return this.server.request('POST', 'sessions/{session_id}/shares', { path: this.#path, body });
  }

  /** Subscribe to future shares of an agent, a task, or the team. */
  async subscribe(
    kind: Schemas['SubscriptionIn']['kind'],
    value = '',
  ): Promise<Schemas['SubscriptionOut']> {
    const body = { session: this.id, kind, value } as Schemas['SubscriptionIn'];
    return this.server.request('POST', 'subscriptions', { body });
  }

  /** Search the team's boards and shared summaries; best hits first. */
  async searchMemory(
    q: string,
    query: { task?: string; limit?: number } = {},
  ): Promise<Schemas['MemoryOut']['found']> {
    return (await this.server.request('GET', 'memory', { query: { q, ...query } })).found;
  }

  /**
   * Where the model first saw a text, what removed it, when it was needed and what that cost, with
   * the answer in `sentence`. `policies: true` simulates policies.
   */
  async why(
    text: string,
    query: { run?: string; step?: number; policies?: boolean } = {},
  ): Promise<Schemas['WhyOut']> {
    const address = 'sessions/{session_id}/why';
    return this.server.request('GET', address, { path: this.#path, query: { text, ...query } });
  }

  /**
   * What the session cost, how much of that could be avoided, and what it lost. `sentence` is null
   * while it goes on, or before it is assessed.
   */
  async verdict(): Promise<Schemas['VerdictOut']> {
    return this.server.request('GET', 'sessions/{session_id}/verdict', { path: this.#path });
  }

  /** Report the outcome. */
  async finish(outcome: NonNullable<SessionFields['outcome']>): Promise<void> {
    const path = { session_id: this.externalId };
    await this.server.request('PUT', 'sessions/{session_id}', { path, body: { outcome } });
  }

  #contextOf(raw: RawContext): Context {
    const parts = Object.entries(pick(raw, PARTS)).filter(([, part]) => part.length !== 0);
    const request = Object.fromEntries([
      ...parts,
      ...(this.model ? [['model', this.model] as const] : []),
    ]);
    const messages = raw.messages ?? [];
    const needsBeta = messages.some((message) => 'clear_at' in message);
    const options = needsBeta ? { headers: { 'anthropic-beta': (raw.betas ?? []).join(',') } } : {};
    const { step, tokens } = raw;
    return { id: raw.context_id ?? '', step, tokens, request, options, messages, raw };
  }
}

/** A server and a key; creates sessions. */
export class ContextLab extends Connection {
  /** Create or update a session under your own id. Warns of unknown fields: they are metadata. */
  async session(externalId: string, fields: SessionFields = {}): Promise<Session> {
    const known = await this.request('PUT', 'sessions/{session_id}', {
      path: { session_id: externalId },
      body: fields as Schemas['SessionIn'],
    });
    for (const note of known.notes ?? []) console.warn(`contextlab: ${note}`);
    return new Session(this, known);
  }
}

/** The result of a tool call that failed. */
export function failedResult(id: string, text: string) {
  const content = [{ type: 'text' as const, text }];
  return { type: 'tool_result' as const, tool_use_id: id, content, is_error: true };
}

function batch(messages: Messages): Json[] {
  return Array.isArray(messages) ? [...messages] : [messages as Json];
}

/** The message in a provider's response. */
function messageOf(reply: Json): Json {
  const message: unknown = reply.choices?.[0]?.message;
  if (isObject(message)) return withoutNulls(message);
  return { role: reply.role ?? 'assistant', content: reply.content };
}
