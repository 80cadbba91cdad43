/* The replay page: what brings it to another run, step or block, and keeps it up to date. */
import * as format from '../../web/format';
import { problemFrom } from '../../web/request';
import { findEntry, nameOfEntry, placeIn, type AxisName, type View } from '../manifest/address';
import { findRow } from '../manifest/composition';
import { merge, shifted, type DeltaJson } from '../manifest/delta';
import { fetchNews, fetchRun, type Holding } from '../manifest/holding';
import { fetchLabels, labeled } from '../manifest/labels';
import { sizeAt } from '../manifest/ledger';
import type { Cause, Manifest } from '../manifest/manifest';
import { AddressBar } from './addressbar';
import { Announcer } from './announcer.svelte';
import { RecordedRun } from './recorded';
import { ofWindow, rememberScale, type Scale } from './scale';
import { Shown } from './shown.svelte';

const compareMs = 1500; // the recorded line may lag behind the run that is watched

export class Replay extends Shown {
  announcer = new Announcer();
  #bar = new AddressBar();
  #recorded = new RecordedRun(this.props.manifest_url); // beside another run
  #request: AbortController | undefined;
  #renewing: Promise<void> | null = null;
  #comparing: ReturnType<typeof setTimeout> | undefined;
  #labeling = ''; // the run whose labels are on their way
  #count = 0; // entries before the last change: their arrays are the same ones

  /** Fetches the manifest of the run; what is shown stays until the new one is here. */
  async load(run = this.run): Promise<void> {
    this.#request?.abort();
    this.#request = new AbortController();
    this.loading = true;
    this.problem = null;
    try {
      const { signal } = this.#request;
      const held = await fetchRun(
        this.props.manifest_url,
        run === 'recorded' && this.usual === 'recorded' ? '' : run,
        signal,
      );
      await new Promise((done) => setTimeout(done)); // keys are heard between decoding and drawing
      if (signal.aborted) return;
      this.#take(run, held, null);
      this.loading = false;
      await this.#compare(run, signal);
    } catch (error) {
      const problem = problemFrom(error);
      if (!problem) return; // another request took its place
      if (problem.status === 404 && run !== this.usual) {
        this.missing = run;
        return this.load(this.usual);
      }
      this.problem = problem;
      this.loading = false;
    }
  }

  /** Brings what is shown up to date, one look at a time. Throws what went wrong: the caller tries again. */
  async renew(): Promise<void> {
    while (this.#renewing) await this.#renewing.catch(() => undefined);
    if (this.loading || !this.manifest || !this.composition) return; // that one brings the newest as well
    this.#renewing = this.#renew(this.run, {
      manifest: this.manifest,
      composition: this.composition,
    });
    try {
      await this.#renewing;
    } finally {
      this.#renewing = null;
    }
  }

  async #renew(run: string, held: Holding): Promise<void> {
    this.#request = new AbortController();
    const { signal } = this.#request;
    const news = await fetchNews(this.props.manifest_url, run, held, signal);
    if (signal.aborted) return;
    this.#take(run, news, news.inserted);
    this.#compareSoon();
  }

  /** Lays a change over what is shown; false where it does not go on from there. */
  take(delta: DeltaJson): boolean {
    if (this.loading || this.#renewing || !this.manifest || !this.composition) return false;
    const merged = merge(this.manifest, this.composition, delta);
    if (!merged) return false;
    const holding = { manifest: merged.manifest, composition: { ...this.composition } };
    this.#take(this.run, holding, merged.inserted);
    this.#compareSoon();
    return true;
  }

  #compareSoon(): void {
    if (this.#comparing) return;
    this.#comparing = setTimeout(() => {
      this.#comparing = undefined;
      void this.#compare(this.run, (this.#request ??= new AbortController()).signal).catch(
        problemFrom,
      );
    }, compareMs);
  }

  #take(run: string, { manifest, composition }: Holding, inserted: number[] | null): void {
    const before = this.manifest;
    const place = placeIn(location.href);
    const name = before && this.selected >= 0 ? nameOfEntry(before, this.selected) : place.message;
    if (inserted) this.previews.insert(inserted);
    else this.previews.renew(run, manifest.entries);
    this.#link(manifest);
    const sameRun = before !== null && run === this.run;
    if (run !== this.usual) this.missing = '';
    const arrived = sameRun ? manifest.entries.count - this.#count : 0;
    this.#count = manifest.entries.count;
    const wanted = before ? this.step : (place.step ?? this.props.step ?? null);
    if (!before)
      this.following =
        manifest.session.live && (wanted === null || wanted >= manifest.session.steps);
    const step = this.following ? manifest.last : (wanted ?? manifest.session.steps);
    if (sameRun && !this.following) this.fresh += Math.max(0, arrived);
    this.run = run;
    this.composition = composition;
    this.manifest = manifest;
    this.step = Math.max(1, Math.min(manifest.last, step));
    if (run === 'recorded') {
      this.baseline = null;
      this.#recorded.forget();
    }
    if (inserted) this.selected = this.selected < 0 ? -1 : shifted(this.selected, inserted);
    else this.selected = name ? findEntry(manifest, name, this.step) : -1;
    if (this.following) this.keepVersion();
    if (!sameRun) this.announcer.begin(manifest);
    else if (manifest.session.version !== before.session.version) {
      this.announcer.note(manifest, sizeAt(manifest, composition, manifest.last));
    }
    if (before) this.#write();
    else this.#name();
    // Managed from its first message on: a reader who waited for it wants to see the managed context.
    const isManagedRun = manifest.runs.some((choice) => choice.origin === 'managed');
    const isKnown = !manifest.session.steps || manifest.steps.managed?.some(Boolean);
    if (
      isManagedRun &&
      isKnown &&
      manifest.session.live &&
      this.usual === 'recorded' &&
      !place.run
    ) {
      this.usual = 'managed';
      setTimeout(() => void this.load('managed'));
    }
  }

  async #compare(run: string, signal: AbortSignal): Promise<void> {
    if (run !== 'recorded') this.baseline = await this.#recorded.baseline(this.manifest!, signal);
  }

  /** The labels of the events and the cards of causes, once something is shown that has one. */
  async label(step = this.step): Promise<void> {
    const { manifest, run } = this;
    if (!manifest || step >= (manifest.labeled_from ?? 1) || this.#labeling === run) return;
    this.#labeling = run;
    try {
      const found = await fetchLabels(this.props.events_url, run);
      if (!this.manifest || this.run !== run) return;
      this.manifest = labeled(this.manifest, found);
      this.#link(this.manifest);
    } catch (error) {
      problemFrom(error); // asked again at the next step
    } finally {
      if (this.#labeling === run) this.#labeling = '';
    }
  }

  /** To the avoidable cache break that cost most, wherever it is. */
  async goToCostliestBreak(): Promise<void> {
    await this.label(1);
    const avoidable = this.manifest?.causes.filter((cause) => cause.avoidable) ?? [];
    const size = (cause: Cause) => cause.cost_microusd ?? 0;
    const most = avoidable.sort((one, other) => size(other) - size(one)).at(0);
    if (most) this.go(most.step, true);
  }

  #link(manifest: Manifest): void {
    for (const event of manifest.events)
      event.url = this.revisionAddress(event.revision ?? 0, manifest);
  }

  /** To a step. A jump is worth a place in the browser's history, a scrub is not. */
  go(step: number, jump = false): void {
    if (!this.manifest) return;
    const to = Math.max(1, Math.min(this.manifest.last, Math.round(step)));
    this.following = false;
    if (to === this.manifest.last) this.fresh = 0;
    if (to === this.step) return;
    this.step = to;
    this.keepVersion();
    this.#write(jump);
  }

  /** The selected message stays selected, in the version that stands at the new step. */
  keepVersion(): void {
    if (this.selected < 0 || !this.manifest) return;
    const standing = findEntry(this.manifest, nameOfEntry(this.manifest, this.selected), this.step);
    if (standing >= 0) this.selected = standing;
  }

  select(entry: number, jump = false): void {
    this.selected = entry;
    this.selections++;
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

  /** To the newest context, and on with it as it grows. */
  follow(): void {
    this.fresh = 0;
    if (this.manifest) this.go(this.manifest.last);
    this.following = true;
    this.#write();
  }

  /** The end of what there is: in a live session that is wherever it goes. */
  end(): void {
    if (this.manifest?.session.live) this.follow();
    else this.go(this.manifest?.session.steps || 1, true);
  }

  /** Stays where it is, whatever arrives. */
  stay(): void {
    this.following = false;
    this.#write();
  }

  /** Back and Forward. */
  restore(): void {
    const place = placeIn(location.href);
    const run = place.run || this.usual;
    this.following = place.step === null && (this.manifest?.session.live ?? false);
    [this.view, this.axisName] = [place.view, place.axis];
    if (this.following) this.step = this.manifest!.last;
    if (place.step !== null)
      this.step = Math.max(1, Math.min(this.manifest?.last ?? 1, place.step));
    if (this.manifest)
      this.selected = place.message ? findEntry(this.manifest, place.message, this.step) : -1;
    if (run !== this.run) void this.load(run);
  }

  show(view: View): void {
    this.view = view;
    this.#write();
  }

  /** The view after the one that is shown. */
  nextView(): void {
    this.show(this.views[(this.views.indexOf(this.view) + 1) % this.views.length]);
  }

  measureBy(axis: AxisName): void {
    this.axisName = axis;
    this.#write();
  }

  /** The scale of the timeline and of the bar. */
  measure(scale: Scale): void {
    this.scaleChoice = scale;
    rememberScale(scale);
  }

  switchRun(run: string): void {
    // The address may have named the run by its policy.
    if (run === this.run || run === this.manifest?.run.id) return;
    history.pushState(null, '', this.address(run));
    void this.load(run);
  }

  #write(jump = false): void {
    const name = () => this.#name();
    this.#bar.write(() => this.address(), name, jump);
  }

  #name(): void {
    const { manifest, ledger } = this;
    if (!manifest || !ledger) return;
    const code = ledger.next ? 'next' : `Step ${this.step}`;
    const size = ofWindow(manifest.session, ledger.size) || format.tokens(ledger.size);
    document.title = `${code} · ${size} · ${manifest.session.title} · ContextLab`;
  }
}
