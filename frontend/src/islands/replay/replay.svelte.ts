/* Everything the replay page knows: which run, which step, which block, and what follows from them. */
import { ask, problemFrom, withQuery, type Problem } from '../../request';
import { addressOf, findEntry, nameOfEntry, placeIn } from './address';
import { cacheStates } from './cache';
import { compose, findRow, rowsAt, type Composition } from './composition';
import { matcher, parseFilter } from './filter';
import { ledgerAt, totals, type Totals } from './ledger';
import { decode, type Manifest, type ManifestJson } from './manifest';
import { Previews } from './previews.svelte';
import { ofWindow, rememberedScale, rememberScale, type Scale } from './scale';
import * as format from '../../format';

export type Props = {
  manifest_url: string; previews_url: string; entry_url: string; simulate_url: string; replay_url: string;
  diff_page_url: string; // with {a} and {b}
  session_url: string; // with {id}: the replay of another session
  revision_url?: string; // with {run} and {number}
  list_url: string; job_url?: string; context_url?: string; previous_url?: string; next_url?: string; step?: number | null;
};
export type Baseline = { sizes: Float64Array; totals: Totals };
export type View = 'table' | 'raw';

export class Replay {
  manifest = $state.raw<Manifest | null>(null);
  composition = $state.raw<Composition | null>(null);
  baseline = $state.raw<Baseline | null>(null); // the recorded run beside a simulated one
  problem = $state.raw<Problem | null>(null);
  loading = $state(true);
  run = $state('recorded');
  step = $state(1);
  selected = $state(-1);
  ghosts = $state(false);
  query = $state('');
  view = $state<View>('table');
  scaleChoice = $state(rememberedScale());
  /** A window that is a guess is nothing to measure against. */
  scale = $derived<Scale>(this.scaleChoice ?? (this.manifest?.session.window_assumed ? 'used' : 'window'));
  /** The composition's table makes room for a message, unless the reader decided. */
  foldChoice = $state<boolean | null>(null);
  folded = $derived(this.foldChoice ?? this.selected >= 0);
  following = $state(false);
  fresh = $state(0); // steps that arrived while pinned
  previews: Previews;

  filter = $derived(parseFilter(this.query));
  /** The whole context of the step, whatever the filter leaves of it. */
  standing = $derived(this.manifest ? rowsAt(this.manifest.entries, this.step) : new Int32Array(0));
  rows = $derived.by(() => {
    if (!this.manifest) return new Int32Array(0);
    const { entries } = this.manifest;
    if (this.filter.empty) return this.ghosts ? rowsAt(entries, this.step, true) : this.standing;
    if (this.filter.needsPreviews) void this.previews.arrived;
    return rowsAt(entries, this.step, this.ghosts, matcher(this.filter, entries, this.step, (i) => this.previews.line(i)));
  });
  ledger = $derived(this.manifest && this.composition ? ledgerAt(this.manifest, this.composition, this.step) : null);
  cache = $derived.by(() => {
    const { manifest, ledger } = this;
    if (!manifest || !ledger) return { state: new Uint8Array(0), divergent: -1 };
    const whole = this.standing;
    const { states, divergent } = cacheStates(manifest.entries, whole, this.step, ledger.hidden, ledger.visible, ledger);
    const state = new Uint8Array(manifest.entries.count);
    whole.forEach((i, row) => (state[i] = states[row]));
    return { state, divergent: ledger.read ? (whole[divergent] ?? -1) : -1 };
  });
  cause = $derived.by(() => {
    const at = this.manifest?.steps.cause[this.step - 1] ?? -1;
    return at >= 0 ? (this.manifest!.causes[at] ?? null) : null;
  });
  eventsHere = $derived(this.manifest?.events.filter((event) => event.step === this.step) ?? []);
  totals = $derived(this.manifest && this.composition ? totals(this.manifest, this.composition) : null);

  #request: AbortController | undefined;
  #written = 0;
  #writing: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly props: Props) {
    this.previews = new Previews(props.previews_url);
    this.run = placeIn(location.href).run || 'recorded';
  }

  /** Fetches the manifest of the run; what is shown stays until the new one is here. */
  async load(run = this.run): Promise<void> {
    this.#request?.abort();
    this.#request = new AbortController();
    this.loading = true;
    this.problem = null;
    try {
      const address = run === 'recorded' ? this.props.manifest_url : withQuery(this.props.manifest_url, { run });
      const { signal } = this.#request;
      const manifest = decode(await ask<ManifestJson>(address, { signal }));
      await new Promise((done) => setTimeout(done)); // keys are heard between decoding and drawing
      if (signal.aborted) return;
      this.#take(run, manifest);
      this.loading = false;
      if (run !== 'recorded') await this.#compare();
    } catch (error) {
      const problem = problemFrom(error);
      if (!problem) return; // another request took its place
      this.problem = problem;
      this.loading = false;
    }
  }

  #take(run: string, manifest: Manifest): void {
    const before = this.manifest;
    const place = placeIn(location.href);
    const name = before && this.selected >= 0 ? nameOfEntry(before, this.selected) : place.message;
    this.previews.renew(run, manifest.entries);
    for (const event of manifest.events) {
      event.url = event.revision === null ? null : this.revisionAddress(event.revision, manifest);
    }
    const composition = compose(manifest.entries, manifest.last);
    const lastCall = Math.max(1, manifest.session.steps);
    let step = this.step;
    if (!before) {
      step = place.step ?? this.props.step ?? lastCall;
      this.following = manifest.session.live && place.step === null;
    } else if (this.following) step = lastCall;
    else if (run === this.run) this.fresh += Math.max(0, manifest.session.steps - before.session.steps);
    this.step = Math.max(1, Math.min(manifest.last, step));
    this.run = run;
    this.composition = composition;
    this.manifest = manifest;
    if (run === 'recorded') this.baseline = null;
    this.selected = name ? findEntry(manifest, name, this.step) : -1;
    if (before) this.#write();
    else this.#name();
  }

  /** The recorded run's line and totals, to read a simulation against. */
  async #compare(): Promise<void> {
    const recorded = decode(await ask<ManifestJson>(withQuery(this.props.manifest_url, { run: 'recorded' }), { signal: this.#request!.signal }));
    const composition = compose(recorded.entries, recorded.last);
    const sizes = Float64Array.from({ length: recorded.session.steps }, (_, i) => ledgerAt(recorded, composition, i + 1).size);
    this.baseline = { sizes, totals: totals(recorded, composition) };
  }

  /** To a step. A jump is worth a place in the browser's history, a scrub is not. */
  go(step: number, jump = false): void {
    if (!this.manifest) return;
    const to = Math.max(1, Math.min(this.manifest.last, Math.round(step)));
    this.following = false;
    if (to === this.step) return;
    this.step = to;
    this.#keepVersion();
    this.#write(jump);
  }

  /** The selected message stays selected, in the version that stands at the new step. */
  #keepVersion(): void {
    if (this.selected < 0 || !this.manifest) return;
    const standing = findEntry(this.manifest, nameOfEntry(this.manifest, this.selected), this.step);
    if (standing >= 0) this.selected = standing;
  }

  select(entry: number, jump = false): void {
    this.selected = entry;
    if (entry >= 0) this.following = false;
    this.#write(jump);
  }

  /** Up or down the rows; from nowhere to the first one. */
  move(by: number, keep: (i: number) => boolean = () => true): void {
    const { rows } = this;
    let row = findRow(rows, this.selected);
    if (row < 0) row = by > 0 ? -1 : rows.length;
    for (row += by; row >= 0 && row < rows.length; row += Math.sign(by)) {
      if (keep(rows[row])) return this.select(rows[row]);
    }
  }

  follow(): void {
    this.fresh = 0;
    if (this.manifest) this.go(Math.max(1, this.manifest.session.steps));
    this.following = true;
  }

  /** Back and Forward. */
  restore(): void {
    const place = placeIn(location.href);
    const run = place.run || 'recorded';
    if (place.step !== null) this.step = Math.max(1, Math.min(this.manifest?.last ?? 1, place.step));
    if (this.manifest) this.selected = place.message ? findEntry(this.manifest, place.message, this.step) : -1;
    if (run !== this.run) void this.load(run);
  }

  /** The scale of the timeline and of the bar. */
  measure(scale: Scale): void {
    this.scaleChoice = scale;
    rememberScale(scale);
  }

  revisionAddress(number: number, manifest = this.manifest): string | null {
    if (!manifest || !number || !this.props.revision_url) return null;
    return this.props.revision_url.replace('{run}', manifest.run.id).replace('{number}', String(number));
  }

  switchRun(run: string): void {
    // The address may have named the run by its policy.
    if (run === this.run || run === this.manifest?.run.id) return;
    history.pushState(null, '', this.address(run));
    void this.load(run);
  }

  address(run = this.run): string {
    const message = this.manifest && this.selected >= 0 ? nameOfEntry(this.manifest, this.selected) : '';
    return addressOf(this.props.replay_url, { step: this.step, run, message });
  }

  get link(): string {
    return new URL(this.address(), location.href).href;
  }

  diffAddress(other: number): string {
    const [a, b] = other < this.step ? [other, this.step] : [this.step, other];
    const address = this.props.diff_page_url.replace('{a}', String(a)).replace('{b}', String(b));
    return this.run === 'recorded' ? address : withQuery(address, { run: this.run });
  }

  #write(jump = false): void {
    clearTimeout(this.#writing);
    if (jump) {
      history.pushState(null, '', this.address());
      this.#name();
      return;
    }
    // Browsers refuse more than some 100 changes in 30 s; and a scrub is one movement.
    const wait = Math.max(0, 150 - (performance.now() - this.#written));
    this.#writing = setTimeout(() => {
      this.#written = performance.now();
      history.replaceState(null, '', this.address());
      this.#name();
    }, wait);
  }

  #name(): void {
    const { manifest, ledger } = this;
    if (!manifest || !ledger) return;
    const code = ledger.next ? 'next' : `S${this.step}`;
    document.title = `${code} · ${ofWindow(manifest.session, ledger.size) || format.tokens(ledger.size)} · ${manifest.session.title} · ContextLab`;
  }
}
