/* Beginnings of texts, fetched as blocks come into view; kept by what they are, not by where they stand. */
import { ask, withQuery } from '../../web/request';
import type { Entries } from './manifest';

const atOnce = 60; // the most that one answer holds

export const firstChars = 1200; // of a text that the server sends

type Answer = { at: number[]; rows: (string | null)[] };

export class Texts {
  /** Grows when texts arrive, or cannot. */
  arrived = $state(0);
  #texts = new Map<string, string>();
  #asked = new Set<string>();

  constructor(readonly address: string) {}

  #name(run: string, entries: Entries, i: number): string {
    return `${run} ${entries.message[i]}.${entries.index[i]}.${entries.edit[i]}`;
  }

  text(run: string, entries: Entries, i: number): string | undefined {
    return this.#texts.get(this.#name(run, entries, i));
  }

  /** Sees to it that these entries have their texts, soon; if one lacks it, those around come with it. */
  want(run: string, entries: Entries, indexes: readonly number[], around: Iterable<number>): void {
    const isMissing = (i: number) => !this.#asked.has(this.#name(run, entries, i));
    if (!indexes.some(isMissing)) return;
    const missing = [...new Set([...indexes, ...around])].filter(isMissing);
    for (let n = 0; n < missing.length; n += atOnce)
      void this.#fetch(run, entries, missing.slice(n, n + atOnce));
  }

  async #fetch(run: string, entries: Entries, indexes: readonly number[]): Promise<void> {
    const names = indexes.map((i) => this.#name(run, entries, i));
    for (const name of names) this.#asked.add(name);
    try {
      const at = indexes.join(',');
      const answer = await ask<Answer>(withQuery(this.address, { run, at }));
      answer.rows.forEach((text, n) => this.#texts.set(names[n], text ?? ''));
    } catch {
      for (const name of names) this.#asked.delete(name); // asked again when they show
    }
    this.arrived++;
  }
}
