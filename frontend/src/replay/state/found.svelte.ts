/* Blocks of the session whose whole text holds the words of the filter, from the server's index. */
import { ask, problemFrom, withQuery } from '../../web/request';

const pauseMs = 200; // while someone types
const atOnce = 500; // the most that one answer holds
const answers = 8; // the most that are asked for

type Answer = {
  hits: { message: number; index: number; replacement: boolean }[];
  next: number | null;
};

/** Words as a query: those with blanks in quotes. */
export const queryOf = (words: readonly string[]): string =>
  words.map((word) => (/\s/.test(word) ? `"${word}"` : word)).join(' ');

export class Found {
  /** By message and index, as "12.0". */
  blocks = $state.raw<ReadonlySet<string>>(new Set());
  searching = $state(false);
  #query = '';
  #timer: ReturnType<typeof setTimeout> | undefined;
  #request: AbortController | undefined;

  constructor(readonly address: string) {}

  want(words: readonly string[]): void {
    const query = queryOf(words);
    if (query === this.#query) return;
    this.#query = query;
    this.#request?.abort();
    clearTimeout(this.#timer);
    this.blocks = new Set();
    this.searching = query !== '';
    if (query) this.#timer = setTimeout(() => void this.#find(query), pauseMs);
  }

  async #find(q: string): Promise<void> {
    const { signal } = (this.#request = new AbortController());
    const blocks = new Set<string>();
    let after: number | null = null;
    try {
      for (let n = 0; n < answers; n++) {
        const more: Record<string, number> = after === null ? {} : { after };
        const address = withQuery(this.address, { q, limit: atOnce, ...more });
        const answer: Answer = await ask<Answer>(address, { signal });
        for (const { message, index, replacement } of answer.hits)
          if (!replacement) blocks.add(`${message}.${index}`);
        this.blocks = new Set(blocks);
        after = answer.next;
        if (after === null) break;
      }
      this.searching = false;
    } catch (error) {
      // The lines that are here are searched all the same.
      if (problemFrom(error)) this.searching = false;
    }
  }
}
