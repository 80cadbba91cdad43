/* One line per entry, fetched as they come into view. */
import { ask, withQuery } from '../../web/request';
import type { Entries } from './manifest';

const searchWindow = 500; // the most that one answer holds

type Window = { from: number; rows: string[] };
type Chosen = { at: number[]; rows: (string | null)[] };

export class Previews {
  /** Grows when lines arrive, so that what shows them is drawn again. */
  arrived = $state(0);
  /** Whether the first lines that were asked for are here, or cannot be. */
  answered = $state(false);
  searching = $state(false);
  #lines: (string | undefined)[] = [];
  #entries: Entries | null = null;
  #run = '';
  #asked = new Set<number>();
  #generation = 0;

  constructor(readonly address: string) {}

  line(i: number): string | undefined {
    return this.#lines[i];
  }

  /** A new manifest: lines stay where the entry at that place is still the same one. */
  renew(run: string, entries: Entries): void {
    const old = this.#entries;
    const kept = run === this.#run && old ? this.#lines : [];
    this.#lines = Array.from({ length: entries.count }, (_, i) =>
      old &&
      i < old.count &&
      old.message[i] === entries.message[i] &&
      old.index[i] === entries.index[i] &&
      old.edit[i] === entries.edit[i]
        ? kept[i]
        : undefined,
    );
    this.#entries = entries;
    this.#run = run;
    this.#asked.clear();
    this.#generation++;
    this.arrived++;
  }

  /** New entries came in at these ascending places of the same run. */
  insert(places: readonly number[]): void {
    if (!places.length) return;
    const count = this.#lines.length;
    const first = Math.min(places[0], count);
    // Behind a place that moved, lines may be of what the server knew already and the page did not.
    if (first < count) this.#lines.length = first;
    this.#lines.length = count + places.length;
    for (const asked of this.#asked) if (asked >= first) this.#asked.delete(asked);
    if (first < count) this.#generation++;
    this.arrived++;
  }

  /** Sees to it that these entries have their lines, soon; if one lacks it, those around come with it. */
  want(indexes: Iterable<number>, around: Iterable<number> = []): void {
    const isMissing = (i: number) => this.#lines[i] === undefined && !this.#asked.has(i);
    const wanted = Array.from(indexes);
    if (!wanted.some(isMissing)) return;
    const missing = [...new Set([...wanted, ...around])].filter(isMissing);
    for (const i of missing) this.#asked.add(i);
    for (let n = 0; n < missing.length; n += searchWindow)
      void this.#fetchAt(missing.slice(n, n + searchWindow));
  }

  /** All of them, for a search by text. */
  async wantAll(): Promise<void> {
    if (this.searching) return;
    const generation = this.#generation;
    this.searching = true;
    try {
      for (
        let from = 0;
        from < this.#lines.length && generation === this.#generation;
        from += searchWindow
      ) {
        const to = Math.min(from + searchWindow, this.#lines.length);
        if (this.#lines.slice(from, to).includes(undefined)) await this.#fetch(from, to);
      }
    } catch {
      // The rows that are here are searched; those in view are asked for again when they show.
    } finally {
      this.searching = false;
    }
  }

  async #fetchAt(indexes: readonly number[]): Promise<void> {
    const generation = this.#generation;
    const at = indexes.join(',');
    try {
      const answer = await ask<Chosen>(withQuery(this.address, { run: this.#run, at }));
      if (generation !== this.#generation) throw new Error('other entries stand there now');
      answer.at.forEach((i, n) => {
        if (i < this.#lines.length) this.#lines[i] = answer.rows[n] ?? undefined;
      });
      this.arrived++;
    } catch {
      for (const i of indexes) this.#asked.delete(i); // asked again when they show
    }
    this.answered = true;
  }

  async #fetch(from: number, to: number): Promise<void> {
    const generation = this.#generation;
    const answer = await ask<Window>(withQuery(this.address, { run: this.#run, from, to }));
    if (generation !== this.#generation) return;
    answer.rows.forEach((line, offset) => {
      if (answer.from + offset < this.#lines.length) this.#lines[answer.from + offset] = line;
    });
    this.arrived++;
    this.answered = true;
  }
}
