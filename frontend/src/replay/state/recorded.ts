/* The recorded run's line and totals, to read another run against. */
import { fetchNews, fetchRun, recordedOf, type Holding } from '../manifest/holding';
import { sizeAt, totals, type Totals } from '../manifest/ledger';
import type { Manifest } from '../manifest/manifest';

export type Baseline = { sizes: Float64Array; totals: Totals };

export class RecordedRun {
  #held: Holding | null = null;

  constructor(readonly address: string) {}

  forget(): void {
    this.#held = null;
  }

  async baseline(shown: Manifest, signal: AbortSignal): Promise<Baseline> {
    const { manifest, composition } = await this.#beside(shown, signal);
    const sizes = Float64Array.from({ length: manifest.session.steps }, (_, i) =>
      sizeAt(manifest, composition, i + 1),
    );
    return { sizes, totals: totals(manifest, composition) };
  }

  async #beside(shown: Manifest, signal: AbortSignal): Promise<Holding> {
    const rewrote = shown.runs.find(({ origin }) => origin === 'recorded')?.revisions;
    if (shown.run.origin === 'managed' && rewrote === 0) return recordedOf(shown);
    this.#held = this.#held
      ? await fetchNews(this.address, 'recorded', this.#held, signal)
      : await fetchRun(this.address, 'recorded', signal);
    return this.#held;
  }
}
