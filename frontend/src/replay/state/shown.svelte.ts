/* What the replay page shows: which run, which step, which block, what follows from them, and their addresses. */
import { withQuery, type Problem } from '../../web/request';
import {
  addressOf,
  nameOfEntry,
  placeIn,
  views,
  type AxisName,
  type View,
} from '../manifest/address';
import { cacheStates } from '../manifest/cache';
import { rowsAt, type Composition } from '../manifest/composition';
import { said } from '../manifest/fate';
import { ledgerAt, sizeAt, totals } from '../manifest/ledger';
import type { Manifest } from '../manifest/manifest';
import { stepsAxis, timeAxis, type Axis } from './axis';
import { Previews } from '../manifest/previews.svelte';
import { standing, type Limits } from './budget';
import { matcher, parseFilter } from './filter';
import { Found } from './found.svelte';
import { Notes } from './notes.svelte';
import type { Baseline } from './recorded';
import { rememberedScale, type Scale } from './scale';

/** `proofs`: words of the sentence, and the address that shows where they come from; `null` is the
    costliest break that was avoidable. */
export type SessionVerdict = {
  tone: string;
  sentence: string;
  detail: string;
  proofs: [words: string, address: string | null][];
};

export type Props = {
  manifest_url: string;
  previews_url: string;
  find_url: string;
  texts_url: string;
  sources_url: string;
  step_notes_url: string;
  may_note?: boolean;
  events_url: string;
  entry_url: string;
  reveal_url?: string; // who may see one block without its masks
  simulate_url?: string;
  policies?: string[]; // that can be simulated: presets, and the team's own with their version
  replay_url: string;
  diff_page_url?: string; // with {a} and {b}
  compare_runs_url?: string; // of two runs of the session
  session_url?: string; // with {id}: the replay of another session
  revision_url?: string; // with {run} and {number}
  job_url?: string;
  context_url?: string;
  previous_url?: string;
  next_url?: string;
  step?: number | null;
  recitation_url?: string;
  default_run?: string;
  pins_url?: string;
  compactions_url?: string;
  limits?: Limits | null;
  verdict?: SessionVerdict; // once a session is over
  in_file?: boolean; // there is no server to follow
};

export class Shown {
  manifest = $state.raw<Manifest | null>(null);
  composition = $state.raw<Composition | null>(null);
  baseline = $state.raw<Baseline | null>(null); // the recorded run beside a simulated one
  problem = $state.raw<Problem | null>(null);
  loading = $state(true);
  run = $state('recorded');
  missing = $state(''); // the run that the address names, where the session has none of that name
  usual = $state('recorded'); // the run that is shown where the address names none
  step = $state(1);
  selected = $state(-1);
  selections = $state(0); // how often the reader chose
  ghosts = $state(false);
  query = $state('');
  view = $state<View>('table');
  axisName = $state<AxisName>('steps');
  scaleChoice = $state(rememberedScale());
  /** A window that is a guess is nothing to measure against. */
  scale = $derived<Scale>(
    this.scaleChoice ?? (this.manifest?.session.window_assumed ? 'used' : 'window'),
  );
  /** The composition's table makes room for a message, unless the reader decided. */
  foldChoice = $state<boolean | null>(null);
  folded = $derived(this.foldChoice ?? this.selected >= 0);
  following = $state(false);
  fresh = $state(0); // entries that arrived while the reader stayed elsewhere
  behind = $state(false); // what is shown could not be brought up to date
  previews: Previews;
  found: Found;
  notes: Notes;

  filter = $derived(parseFilter(this.query));
  /** The whole context of the step, whatever the filter leaves of it. */
  standing = $derived(this.manifest ? rowsAt(this.manifest.entries, this.step) : new Int32Array(0));
  rows = $derived.by(() => {
    if (!this.manifest) return new Int32Array(0);
    const { entries } = this.manifest;
    if (this.view === 'transcript') return said(entries, this.step, this.matches);
    if (!this.matches) return this.ghosts ? rowsAt(entries, this.step, true) : this.standing;
    return rowsAt(entries, this.step, this.ghosts, this.matches);
  });
  /** Whether the filter keeps an entry; nothing where there is no filter. */
  matches = $derived.by(() => {
    if (!this.manifest || this.filter.empty) return undefined;
    if (this.filter.needsPreviews) void this.previews.arrived;
    return matcher(
      this.filter,
      this.manifest.entries,
      this.step,
      (i) => this.previews.line(i),
      this.pinned,
      this.found.blocks,
    );
  });
  ledger = $derived(
    this.manifest && this.composition ? ledgerAt(this.manifest, this.composition, this.step) : null,
  );
  cache = $derived.by(() => {
    const { manifest, ledger } = this;
    if (!manifest || !ledger) return { state: new Uint8Array(0), divergent: -1 };
    const whole = this.standing;
    const { states, divergent } = cacheStates(
      manifest.entries,
      whole,
      this.step,
      ledger.hidden,
      ledger.visible,
      ledger,
    );
    const state = new Uint8Array(manifest.entries.count);
    whole.forEach((i, row) => (state[i] = states[row]));
    return { state, divergent: ledger.read ? (whole[divergent] ?? -1) : -1 };
  });
  cause = $derived.by(() => {
    const at = this.manifest?.steps.cause[this.step - 1] ?? -1;
    return at >= 0 ? (this.manifest!.causes[at] ?? null) : null;
  });
  eventsHere = $derived(this.manifest?.events.filter((event) => event.step === this.step) ?? []);
  pinned = $derived(new Set(this.manifest?.pins ?? []));
  /** Of the next call, while the session runs. */
  budget = $derived.by(() => {
    const { manifest, composition } = this;
    const { limits } = this.props;
    if (!manifest?.session.live || !composition || !limits) return null;
    // What the agent gets, whichever run is shown.
    const { used, budget } = manifest.session;
    return standing(limits, used ?? sizeAt(manifest, composition, manifest.last), budget?.counted);
  });
  times = $derived(this.manifest ? timeAxis(this.manifest.steps.at, this.manifest.last) : null);
  axis = $derived<Axis>(
    (this.axisName === 'time' && this.times) || stepsAxis(this.manifest?.last ?? 1),
  );
  totals = $derived(
    this.manifest && this.composition ? totals(this.manifest, this.composition) : null,
  );

  readonly views: readonly View[]; // that are offered

  constructor(readonly props: Props) {
    this.views = views.filter((view) => view !== 'raw' || props.context_url);
    this.previews = new Previews(props.previews_url);
    this.found = new Found(props.find_url);
    this.notes = new Notes(props.step_notes_url, props.may_note ?? false);
    this.usual = props.default_run ?? 'recorded';
    const place = placeIn(location.href);
    this.run = place.run || this.usual;
    [this.view, this.axisName] = [place.view, place.axis];
  }

  address(run = this.run, step = this.following ? null : this.step): string {
    const message =
      this.manifest && this.selected >= 0 ? nameOfEntry(this.manifest, this.selected) : '';
    const place = { step, run, message, view: this.view, axis: this.axisName };
    return addressOf(this.props.replay_url, place, this.usual);
  }

  /** The address of this step, also while following: who gets it sees what is seen here. */
  get link(): string {
    return new URL(this.address(this.run, this.step), location.href).href;
  }

  diffAddress(other: number): string | null {
    const address = this.#diffPage(Math.min(other, this.step), Math.max(other, this.step));
    return !address || (this.run === 'recorded' && this.usual === 'recorded')
      ? address
      : withQuery(address, { run: this.run });
  }

  /** This step of the run beside that of the recorded one; null where that is shown, or there is none. */
  get besideAddress(): string | null {
    const recorded = this.manifest?.runs.some(
      (run) => run.origin === 'recorded' && run.state === 'ready',
    );
    const address = this.#diffPage(this.step, this.step);
    if (!this.manifest || !recorded || !address || this.manifest.run.origin === 'recorded')
      return null;
    return withQuery(address, { run: 'recorded', with: this.manifest.run.id });
  }

  #diffPage(a: number, b: number): string | null {
    return this.props.diff_page_url?.replace('{a}', String(a)).replace('{b}', String(b)) ?? null;
  }

  sessionAddress(id: string): string | null {
    return this.props.session_url?.replace('{id}', id) ?? null;
  }

  revisionAddress(number: number, manifest = this.manifest): string | null {
    if (!manifest || !number || !this.props.revision_url) return null;
    return this.props.revision_url
      .replace('{run}', manifest.run.id)
      .replace('{number}', String(number));
  }
}
