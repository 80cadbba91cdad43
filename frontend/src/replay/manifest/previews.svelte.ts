/* One line per entry, fetched in windows as they come into view. */
import { ask, withQuery } from '../../web/request';
import type { Entries } from './manifest';

const windowSize = 200;
const searchWindow = 500; // the most that one answer holds

type Answer = { from: number; rows: string[] };

export class Previews {
  /** Grows when lines arrive, so that what shows them is drawn again. */
  arrived = $state(0);
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
    for (const window of this.#asked)
      if (window >= Math.floor(first / windowSize)) this.#asked.delete(window);
    if (first < count) this.#generation++;
    this.arrived++;
  }

  /** Sees to it that these entries have their lines, soon. */
  want(indexes: Iterable<number>): void {
    const windows = new Set<number>();
    for (const i of indexes)
      if (this.#lines[i] === undefined) windows.add(Math.floor(i / windowSize));
    for (const window of windows) {
      if (this.#asked.has(window)) continue;
      this.#asked.add(window);
      // Only what is missing: at the end of a session that grows it is a line or two.
      let from = window * windowSize;
      let to = Math.min(from + windowSize, this.#lines.length);
      while (from < to && this.#lines[from] !== undefined) from++;
      while (to > from && this.#lines[to - 1] !== undefined) to--;
      void this.#fetch(from, to).catch(() => this.#asked.delete(window));
    }
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

  async #fetch(from: number, to: number): Promise<void> {
    const generation = this.#generation;
    const answer = await ask<Answer>(withQuery(this.address, { run: this.#run, from, to }));
    if (generation !== this.#generation) return;
    answer.rows.forEach((line, offset) => {
      if (answer.from + offset < this.#lines.length) this.#lines[answer.from + offset] = line;
    });
    this.arrived++;
  }
}
