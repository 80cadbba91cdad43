/* What the lab holds: a draft, the sessions it is tried on, and what is estimated of them. */
import { ask, problemFrom, send, type Problem } from '../web/request';
import { fromQuery, toQuery, wanted, type Choice } from './choice';
import { estimate, isRough, notEstimated, type Estimate } from './estimate';
import { longest, type Sizes } from './sizes';
import { isSame, valueAt, withValue, type Field, type PolicyDocument, type Value } from './policy';
import { recorded, totalsOf } from './totals';

type Remark = { path: string; text: string; severity: 'warning' | 'note' };
type Checked = {
  document: PolicyDocument;
  fields: Field[];
  origins: Record<string, 'policy' | 'preset' | 'default'>;
  remarks: Remark[];
  about: Record<string, string>;
  problem: { path: string; text: string } | null;
};
type Begun = Checked & { ref: string; name: string; preset: boolean; based_on: string };
export type SessionLine = {
  id: string;
  title: string;
  agent: string;
  model: string;
  steps: number;
  peak: number;
  cost: number | null;
};
type PolicyLine = { ref: string; name: string; note: string; active: boolean };

export type LabProps = {
  may_write: boolean;
  active: Begun;
  draft: Begun;
  policies: PolicyLine[];
  sessions: SessionLine[];
  facets: Record<string, string[]>;
  flags: [string, string][];
  choice: Choice;
  minor: string[]; // strategies that an estimate may leave out
  most_sessions: number;
  most_others: number;
  lab_url: string;
  draft_url: string;
  curves_url: string;
  simulations_url: string;
  simulation_url: string;
  replay_url: string;
  policy_edit_url: string;
};

const soon = 250; // ms after the last change before the server is asked

export class Lab {
  begun = $state.raw<Begun>()!;
  document = $state.raw<PolicyDocument>()!;
  checked = $state.raw<Checked>()!; // what the server last said of the draft
  choice = $state.raw<Choice>()!;
  name = $state('');
  note = $state('');
  others = $state<string[]>([]);
  sizes = $state.raw<Sizes[]>([]);
  leftOut = $state(0);
  shown = $state(''); // the session whose curves are drawn
  fetching = $state(false);
  choiceProblem = $state.raw<Problem | null>(null);
  runProblem = $state.raw<Problem | null>(null);
  draftProblem = $state.raw<Problem | null>(null);
  running = $state(false);
  #asking: AbortController | undefined;
  #checking: AbortController | undefined;
  #timers: Record<string, ReturnType<typeof setTimeout>> = {};

  constructor(readonly props: LabProps) {
    const begun = props.draft;
    this.begun = begun;
    this.checked = begun;
    this.document = begun.document;
    this.name = ownName(begun);
    this.choice = fromQuery(new URLSearchParams(location.search)) ?? props.choice;
    this.#takeAddress();
    this.fetchCurves();
  }

  // Each kind of estimate is worked out when what it rests on changes, and not before.
  active = $derived.by(() => this.sizes.map((one) => estimate(one, this.props.active.document)));
  asRecorded = $derived.by(() => this.sizes.map(recorded));
  draft: Estimate[] = $derived.by(() => this.sizes.map((one) => estimate(one, this.document)));
  totals = $derived({
    draft: totalsOf(this.draft),
    active: totalsOf(this.active),
    recorded: totalsOf(this.asRecorded),
  });
  missing = $derived(notEstimated(this.document));
  rough = $derived.by(() => isRough(this.document, this.props.minor));
  activeMissing = $derived.by(() => notEstimated(this.props.active.document));
  activeRough = $derived.by(() => isRough(this.props.active.document, this.props.minor));
  place = $derived.by(() => {
    const chosen = this.sizes.findIndex((one) => one.id === this.shown);
    return chosen < 0 ? longest(this.sizes) : chosen;
  });
  changed = $derived(!isSame(this.document, this.begun.document));
  changes = $derived(this.checked.fields.filter((field) => this.differs(field.path)).length);

  differs(path: string): boolean {
    return (
      JSON.stringify(valueAt(this.document, path)) !==
      JSON.stringify(valueAt(this.begun.document, path))
    );
  }

  value(path: string): Value | undefined {
    return valueAt(this.document, path);
  }

  put(path: string, value: Value): void {
    this.document = withValue(this.document, path, value);
    this.#later('check', () => void this.#check());
    this.#later('address', () => this.#writeAddress());
  }

  reset(): void {
    this.document = this.begun.document;
    this.checked = this.begun;
    this.draftProblem = null;
    this.#writeAddress();
  }

  choose(choice: Choice): void {
    this.choice = choice;
    this.#later('curves', () => this.fetchCurves());
    this.#later('address', () => this.#writeAddress());
  }

  /** Begins from another version; what was changed is left behind. */
  async begin(ref: string): Promise<void> {
    try {
      const begun = await send<Begun>(this.props.draft_url, { ref });
      this.begun = begun;
      this.document = begun.document;
      this.checked = begun;
      this.name = ownName(begun);
      this.draftProblem = null;
      this.#writeAddress();
    } catch (error) {
      this.draftProblem = problemFrom(error);
    }
  }

  async fetchCurves(): Promise<void> {
    this.#asking?.abort();
    const mine = (this.#asking = new AbortController());
    if (this.choice.by === 'hand' && !this.choice.ids?.length) {
      this.sizes = [];
      this.choiceProblem = null;
      return;
    }
    this.fetching = true;
    try {
      const curves = await ask<{ sessions: Sizes[]; left_out: number }>(
        `${this.props.curves_url}?${toQuery(this.choice)}`,
        { signal: mine.signal },
      );
      this.sizes = curves.sessions;
      this.leftOut = curves.left_out;
      this.choiceProblem = null;
    } catch (error) {
      const problem = problemFrom(error);
      if (problem) {
        this.choiceProblem = problem;
        this.sizes = [];
      }
    } finally {
      if (mine === this.#asking) this.fetching = false;
    }
  }

  /** What the server says of the draft: origins and remarks. */
  async #check(): Promise<void> {
    this.#checking?.abort();
    const mine = (this.#checking = new AbortController());
    const windows = this.sizes.map((one) => one.window);
    const body = {
      document: this.document,
      based_on: this.begun.based_on,
      window: windows.length ? Math.min(...windows) : undefined,
    };
    try {
      const checked = await send<Checked>(this.props.draft_url, body);
      if (mine !== this.#checking) return;
      this.draftProblem = null;
      this.checked = checked.problem ? { ...this.checked, problem: checked.problem } : checked;
    } catch (error) {
      if (mine === this.#checking) this.draftProblem = problemFrom(error);
    }
  }

  /** Saves the draft where it differs from what it began with, asks for the simulation, and goes there. */
  async run(): Promise<void> {
    if (this.running || !this.props.may_write) return;
    this.running = true;
    this.runProblem = null;
    const draft = this.changed
      ? { document: this.document, name: this.name.trim(), based_on: this.begun.based_on }
      : this.begun.ref;
    try {
      const asked = await send<{ simulation: string }>(this.props.simulations_url, {
        sessions: wanted(this.choice),
        draft,
        others: this.others,
        note: this.note,
      });
      location.assign(this.props.simulation_url.replace('{id}', asked.simulation));
    } catch (error) {
      this.runProblem = problemFrom(error);
      this.running = false;
    }
  }

  #later(name: string, act: () => void): void {
    clearTimeout(this.#timers[name]);
    this.#timers[name] = setTimeout(act, soon);
  }

  /** The address says all of it, so that a reload, or a colleague, sees the same. */
  #writeAddress(): void {
    const query = toQuery(this.choice);
    query.set('draft', this.begun.ref);
    const set = this.checked.fields
      .filter((field) => this.differs(field.path))
      .map((field) => `${field.path}=${JSON.stringify(this.value(field.path))}`);
    const hash = set.length ? `#${set.map(encodeURIComponent).join('&')}` : '';
    history.replaceState(null, '', `${this.props.lab_url}?${query}${hash}`);
  }

  #takeAddress(): void {
    const known = new Set(this.begun.fields.map((field) => field.path));
    let any = false;
    for (const part of location.hash.slice(1).split('&').filter(Boolean)) {
      try {
        const [path, ...rest] = decodeURIComponent(part).split('=');
        if (!known.has(path)) continue;
        this.document = withValue(this.document, path, JSON.parse(rest.join('=')) as Value);
        any = true;
      } catch {
        // An address that was cut short: the value stays as it was.
      }
    }
    if (any) void this.#check();
  }
}

/** Under which name a draft is saved: presets stay as they are. */
const ownName = (begun: Begun): string => (begun.preset ? `${begun.name}-tuned` : begun.name);
