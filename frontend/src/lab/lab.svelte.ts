/* What the lab holds: a draft, the sessions it is tried on, and what its simulation found. */
import { problemFrom, send, type Problem } from '../web/request';
import { fromQuery, toQuery, wanted, type Choice } from './simulation/choice';
import { Undo } from './draft';
import { isSame, valueAt, withValue, type Field, type PolicyDocument, type Value } from './policy';
import { fromHash, toHash } from './address';
import { simulate, type Line } from './stream';
import { Trial } from './trial.svelte';

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
  groups: string[]; // in the order of pages
  assumptions: string[];
  most_sessions: number;
  most_others: number;
  lab_url: string;
  draft_url: string;
  figures_url: string;
  simulations_url: string;
  simulation_url: string;
  propose_url: string;
  replay_url: string;
  policy_edit_url: string;
};

const soon = 250; // ms after the last change before the address and the remarks follow
const apart = 120; // ms between two requests while a slider moves: the first figures come sooner
const page = crypto.randomUUID(); // the server ends this page's older simulation

export class Lab {
  begun = $state.raw<Begun>()!;
  document = $state.raw<PolicyDocument>()!;
  checked = $state.raw<Checked>()!; // what the server last said of the draft
  choice = $state.raw<Choice>()!;
  name = $state('');
  note = $state('');
  others = $state<string[]>([]);
  saving = $state(false);
  runProblem = $state.raw<Problem | null>(null);
  draftProblem = $state.raw<Problem | null>(null);
  moving = $state(false); // a slider is held
  readonly trial = new Trial();
  #undo = new Undo();
  #asking: AbortController | undefined;
  #asked = 0;
  #checking: AbortController | undefined;
  #timers: Record<string, ReturnType<typeof setTimeout>> = {};

  constructor(readonly props: LabProps) {
    this.choice = fromQuery(new URLSearchParams(location.search)) ?? props.choice;
    this.#startFrom(props.draft);
    this.document = fromHash(location.hash, props.draft.document, props.draft.fields);
    if (this.changed) void this.#check();
    this.#simulate();
  }

  changed = $derived(!isSame(this.document, this.begun.document));
  /** Whether its single settings can be compared with those of the active version. */
  comparable = $derived.by(() => {
    const names = (one: PolicyDocument) => one.steps.map((step) => step.strategy).join();
    return names(this.document) === names(this.props.active.document);
  });
  fromActive = $derived.by(() => isSame(this.begun.document, this.props.active.document));
  propose = $derived.by(
    () => this.props.may_write && this.trial.over && !!this.trial.shown?.verdict.propose,
  );

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
    if (JSON.stringify(value) === JSON.stringify(this.value(path))) return;
    this.#undo.keep(this.document, path, performance.now());
    this.#set(withValue(this.document, path, value));
  }

  undo(): void {
    const before = this.#undo.back();
    if (before) this.#set(before);
  }

  reset(): void {
    this.#undo.keep(this.document, '', performance.now());
    this.#set(this.begun.document);
  }

  choose(choice: Choice): void {
    this.choice = choice;
    this.#asking?.abort();
    this.trial.forget();
    this.#later('simulate', soon, () => this.#simulate());
    this.#later('address', soon, () => this.#writeAddress());
  }

  /** Starts from another version; what was changed is left behind. */
  async begin(ref: string): Promise<void> {
    try {
      this.#startFrom(await send<Begun>(this.props.draft_url, { ref }));
      this.trial.effects = {};
      this.#simulate();
      this.#writeAddress();
    } catch (error) {
      this.draftProblem = problemFrom(error);
    }
  }

  /** Saves the draft where it differs from what it began with, and has it simulated on all chosen sessions; then goes
      to the result, or to the proposal with it. */
  async keep(to: 'simulation' | 'proposal'): Promise<void> {
    if (this.saving || !this.props.may_write || (to === 'proposal' && !this.propose)) return;
    this.saving = true;
    this.runProblem = null;
    const draft = this.changed
      ? { document: this.document, name: this.name.trim(), based_on: this.begun.based_on }
      : this.begun.ref;
    try {
      const asked = await send<{ simulation: string; draft: string }>(this.props.simulations_url, {
        sessions: wanted(this.choice),
        draft,
        others: this.others,
        note: this.note,
      });
      const [name, number] = asked.draft.split('@');
      const proposal = this.props.propose_url.replace('{name}', name).replace('{number}', number);
      location.assign(
        to === 'proposal'
          ? `${proposal}?simulation=${asked.simulation}`
          : this.props.simulation_url.replace('{id}', asked.simulation),
      );
    } catch (error) {
      this.runProblem = problemFrom(error);
      this.saving = false;
    }
  }

  /** Tries again what failed. */
  again(): void {
    this.#simulate();
  }

  #startFrom(begun: Begun): void {
    this.begun = begun;
    this.document = begun.document;
    this.checked = begun;
    this.name = begun.preset ? `${begun.name}-tuned` : begun.name;
    this.draftProblem = null;
  }

  #set(document: PolicyDocument): void {
    this.document = document;
    this.#later('check', soon, () => void this.#check());
    this.#later('address', soon, () => this.#writeAddress());
    const wait = this.#asked + apart - performance.now();
    this.trial.moved();
    this.#later('simulate', Math.max(0, wait), () => this.#simulate());
  }

  #simulate(): void {
    this.#asking?.abort();
    this.#asked = performance.now();
    if (this.choice.by === 'hand' && !this.choice.ids?.length) {
      this.trial.take({ kind: 'sessions', sessions: [], left_out: 0, active: '' });
      return;
    }
    const mine = (this.#asking = new AbortController());
    this.trial.begin();
    const body = {
      page,
      sessions: wanted(this.choice),
      document: this.document,
    };
    simulate(this.props.figures_url, body, mine.signal, (line: Line) => this.trial.take(line))
      .then(() => mine === this.#asking && this.trial.end())
      .catch((error) => {
        const problem = problemFrom(error);
        if (problem && mine === this.#asking) this.trial.fail(problem);
      });
  }

  /** What the server says of the draft: origins and remarks. */
  async #check(): Promise<void> {
    this.#checking?.abort();
    const mine = (this.#checking = new AbortController());
    const body = { document: this.document, based_on: this.begun.based_on };
    try {
      const checked = await send<Checked>(this.props.draft_url, body);
      if (mine !== this.#checking) return;
      this.draftProblem = null;
      this.checked = checked.problem ? { ...this.checked, problem: checked.problem } : checked;
    } catch (error) {
      if (mine === this.#checking) this.draftProblem = problemFrom(error);
    }
  }

  #later(name: string, ms: number, act: () => void): void {
    clearTimeout(this.#timers[name]);
    this.#timers[name] = setTimeout(act, ms);
  }

  /** The address holds all of it, so that a reload, or a colleague, sees the same. */
  #writeAddress(): void {
    const query = toQuery(this.choice);
    query.set('draft', this.begun.ref);
    const changed = this.checked.fields.filter((field) => this.differs(field.path));
    const hash = toHash(changed.map(({ path }) => [path, this.value(path)!]));
    history.replaceState(null, '', `${this.props.lab_url}?${query}${hash}`);
  }
}
