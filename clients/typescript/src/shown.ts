/** Replies as an agent saw them, and what the model had said: it also read back what stubs name. */

import { blocksOf, type Json } from './json.js';

/**
 * A reply as the agent saw it, the messages that the model knows for it, and results that the
 * agent lacks.
 */
interface ShownReply {
  content: Json[];
  messages: Json[];
  results: Json[];
}

/** Replies that differ from what the model said, by their place in the agent's history. */
export class ShownReplies {
  #replies = new Map<number, ShownReply>();

  /** Remember a reply; later ones are gone, since the agent went back. */
  add(place: number, shown: ShownReply): void {
    for (const at of this.#replies.keys()) if (at >= place) this.#replies.delete(at);
    this.#replies.set(place, shown);
  }

  /** The agent's history as the model knows it: with all calls of `read_back`, and results. */
  restored(messages: Json[]): Json[] {
    const made: Json[] = [];
    let results: Json[] = [];
    messages.forEach((message, place) => {
      const given =
        results.length && message.role === 'user'
          ? { ...message, content: [...results, ...blocksOf(message.content)] }
          : message;
      results = [];
      const known = this.#replies.get(place);
      if (known && said(known.content) === said(message.content)) {
        made.push(...known.messages);
        results = known.results;
      } else made.push(given);
    });
    return made;
  }
}

/** What an agent keeps of a reply, however it stores it: the text, and ids of calls. */
function said(content: unknown): string {
  const blocks = blocksOf(content);
  const text = blocks.map((block) => block.text ?? '').join('');
  const calls = blocks.filter((block) => block.type === 'tool_use').map((block) => block.id);
  return JSON.stringify([text.trim(), calls]);
}
