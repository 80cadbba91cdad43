/* What is known of the draft on the chosen sessions: figures as they come, and what they replace. */
import type { Problem } from '../web/request';
import type { Done, Effect, Figures, Line, Point, Row, Session } from './stream';

const late = 1000; // ms after which figures of some of the sessions are shown
const tail = 30; // earlier drafts that the picture keeps

export class Trial {
  sessions = $state.raw<Session[] | null>(null); // null until they are known
  leftOut = $state(0);
  active = $state('');
  shown = $state.raw<Figures | null>(null); // in the table and the verdict
  newest = $state.raw<Figures | null>(null);
  rows = $state.raw<ReadonlyMap<string, Row>>(new Map());
  done = $state.raw<Done | null>(null); // of the last complete simulation
  effects = $state.raw<Record<string, Effect>>({});
  points = $state.raw<Point[]>([]);
  oracle = $state<number | null>(null);
  tried = $state.raw<{ cost: number; recall: number }[]>([]);
  running = $state(false); // figures of this draft are still to come
  stale = $state(false); // what is shown is of an earlier draft, or of some of the sessions
  problem = $state.raw<Problem | null>(null);
  #began = 0;

  /** Whether the figures shown are those of the draft on all sessions. */
  over = $derived(!this.running && !this.stale && this.shown?.through === this.shown?.total);

  /** Where the draft stands while some sessions are still to come: these count as under the active version. */
  position = $derived.by((): { cost: number; recall: number } | null => {
    const [now, whole] = [this.newest, this.shown];
    if (!now) return null;
    const at = (one: Figures) =>
      one.draft.charged_microusd === null || one.draft.in_context === null
        ? null
        : { cost: one.draft.charged_microusd, recall: one.draft.in_context };
    if (now.through === now.total || !whole || whole.through < whole.total) return at(now);
    const [mine, theirs, all] = [now.draft, now.active, whole.active];
    if (!at(now) || all.charged_microusd === null || !all.needs) return at(whole);
    const gained = ((mine.in_context ?? 0) - (theirs.in_context ?? 0)) * (mine.needs ?? 0);
    return {
      cost: all.charged_microusd + mine.charged_microusd! - (theirs.charged_microusd ?? 0),
      recall: (all.in_context ?? 0) + gained / all.needs,
    };
  });

  /** How many sessions `position` is of: until some draft is through all of them, those that are in. */
  counted = $derived.by((): number => {
    const [now, whole] = [this.newest, this.shown];
    return !now || !whole || whole.through < whole.total ? (now?.through ?? 0) : now.total;
  });

  /** Other sessions: nothing known holds for them. */
  forget(): void {
    this.moved();
    this.sessions = this.shown = this.newest = this.done = this.oracle = null;
    this.rows = new Map();
    this.points = [];
    this.tried = [];
    this.effects = {};
  }

  moved(): void {
    this.stale = true;
    this.running = true;
    this.problem = null;
  }

  begin(): void {
    this.moved();
    this.#began = performance.now();
  }

  take(line: Line): void {
    switch (line.kind) {
      case 'sessions':
        this.sessions = line.sessions;
        this.#forgetOthers(line.sessions);
        this.leftOut = line.left_out;
        this.active = line.active;
        if (!line.sessions.length) {
          this.shown = this.newest = null;
          this.running = this.stale = false;
        }
        break;
      case 'figures':
        this.#figures(line);
        break;
      case 'done':
        this.done = line;
        this.running = false;
        if (this.position) this.tried = [...this.tried, this.position].slice(-tail);
        break;
      case 'effect':
        this.effects = { ...this.effects, [line.path]: line };
        break;
      case 'point':
        this.points = [...this.points.filter((one) => one.name !== line.name), line];
        break;
      case 'oracle':
        this.oracle = line.cost_microusd;
        break;
      case 'problem':
        this.fail({ title: line.title, detail: line.detail, reference: '' });
    }
  }

  fail(problem: Problem): void {
    this.problem = problem;
    this.running = false;
  }

  /** The stream has ended; without figures for all sessions it was cut off. */
  end(): void {
    if (this.running)
      this.fail({
        title: 'The simulation stopped',
        detail: 'It took too long or its worker ended. Choose fewer sessions, or run it as a job.',
        reference: '',
      });
  }

  /** The newest sessions may be others than before. */
  #forgetOthers(sessions: Session[]): void {
    const ids = new Set(sessions.map((one) => one.id));
    this.rows = new Map([...this.rows].filter(([id]) => ids.has(id)));
  }

  #figures(line: Figures): void {
    const whole = line.through === line.total;
    this.newest = line;
    const rows = new Map(this.rows);
    for (const row of line.rows) rows.set(row.id, row);
    this.rows = rows;
    if (whole || !this.shown || performance.now() - this.#began > late) {
      this.shown = line;
      this.stale = !whole;
    }
  }
}
