/** What our server has of a conversation, so that only what is new is sent. */

import type { Context, Messages, StepFields } from './answers.js';
import { blocksOf, isObject, type Json } from './json.js';
import { OverBudget, Paused, Refused } from './problems.js';

/**
 * Where a session ends after an append: the number of the last message that it stored, null if it
 * stored none, and the revision of the recorded context.
 */
export interface End {
  last: number | null;
  revision: number | null;
}

/** The end of a session in the answer to an append; unknown if nothing was sent. */
export function endOf(
  appended: { last_seq: number | null; recorded_revision: number } | null | undefined,
): End {
  return { last: appended?.last_seq ?? null, revision: appended?.recorded_revision ?? null };
}

/** What is stored, what was sent beside it, and the end of the session, which has a message. */
interface Sent {
  messages: string[];
  setup: string;
  end: End;
}

type Step = (messages: Messages, fields: StepFields) => Promise<Context>;

/**
 * Sends the messages of a history that our server lacks; on doubt, all of them.
 *
 * On doubt: at first, after a failure, and where a history does not begin with what is stored. A
 * server where others added to the session or took something back refuses the rest of a history
 * (`after` and `recorded_revision`).
 */
export class StoredHistory {
  #known: Sent | null = null;

  /** Send what is new of a history and of its `setup`, which is tools and system prompt. */
  async send(messages: Json[], setup: Json, step: Step): Promise<Context> {
    const known = this.#taken();
    const said = messages.map(saidBy);
    const setUp = JSON.stringify(bare(setup));
    if (known && known.messages.every((one, at) => one === said[at])) {
      const changed = known.setup === setUp ? {} : setup;
      const end = { after: known.end.last, recorded_revision: known.end.revision };
      try {
        const rest = messages.slice(known.messages.length);
        const context = await step(rest, { history: false, ...end, ...changed });
        const { last, revision } = endOf(context.raw.appended);
        const follows = { last: last ?? known.end.last, revision: revision ?? known.end.revision };
        this.#known = { messages: said, setup: setUp, end: follows };
        return context;
      } catch (error) {
        const isOurs = error instanceof OverBudget || error instanceof Paused;
        if (isOurs || !(error instanceof Refused)) throw error;
      }
    }
    const context = await step(messages, { history: true, ...setup });
    const end = endOf(context.raw.appended);
    if (end.last !== null) this.#known = { messages: said, setup: setUp, end };
    return context;
  }

  /** Send a message that follows; `append` returns the end of the session. */
  async append(message: Json, append: () => Promise<End>): Promise<void> {
    const known = this.#taken();
    const end = await append();
    if (known && end.last === (known.end.last ?? 0) + 1 && end.revision === known.end.revision)
      this.#known = { ...known, messages: [...known.messages, saidBy(message)], end };
  }

  /** What is known; unknown from now on, until a request is answered. */
  #taken(): Sent | null {
    const known = this.#known;
    this.#known = null;
    return known;
  }
}

function saidBy(message: Json): string {
  return JSON.stringify(bare({ ...message, content: blocksOf(message.content) }));
}

/** A value without what may differ between sends: breakpoints move, and nulls come and go. */
function bare(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(bare);
  if (!isObject(value)) return value;
  const kept = Object.entries(value).filter(
    ([name, one]) => name !== 'cache_control' && one != null,
  );
  return Object.fromEntries(
    kept.sort(([a], [b]) => (a < b ? -1 : 1)).map(([n, one]) => [n, bare(one)]),
  );
}
