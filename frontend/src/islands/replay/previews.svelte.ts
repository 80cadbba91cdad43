/* One line per entry, fetched in windows as they come into view. */
import { ask, withQuery } from '../../request';
import type { Entries } from './manifest';

const windowSize = 200;
const searchWindow = 2000;

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
      old && i < old.count && old.message[i] === entries.message[i] && old.index[i] === entries.index[i] && old.edit[i] === entries.edit[i] ? kept[i] : undefined,
    );
    this.#entries = entries;
    this.#run = run;
    this.#asked.clear();
    this.#generation++;
    this.arrived++;
  }

  /** Sees to it that these entries have their lines, soon. */
  want(indexes: Iterable<number>): void {
    const windows = new Set<number>();
    for (const i of indexes) if (this.#lines[i] === undefined) windows.add(Math.floor(i / windowSize));
    for (const window of windows) {
      if (this.#asked.has(window)) continue;
      this.#asked.add(window);
      void this.#fetch(window * windowSize, (window + 1) * windowSize).catch(() => this.#asked.delete(window));
    }
  }

  /** All of them, for a search by text. */
  async wantAll(): Promise<void> {
    if (this.searching) return;
    const generation = this.#generation;
    this.searching = true;
    try {
      for (let from = 0; from < this.#lines.length && generation === this.#generation; from += searchWindow) {
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
    const answer = await ask<{ from: number; rows: string[] }>(
      withQuery(this.address, { run: this.#run, from, to: Math.min(to, this.#lines.length) }),
    );
    if (generation !== this.#generation) return;
    answer.rows.forEach((line, offset) => (this.#lines[answer.from + offset] = line));
    this.arrived++;
  }
}
