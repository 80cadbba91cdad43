/* What a policy comes to in numbers of tokens alone: worked out while a slider moves.
   Follows compaction/strategies and compaction/simulation/run.py as far as sizes can tell; what they
   cannot tell is named by notEstimated(), and a run says it exactly. */
import { cost, type Prompt } from './cost';
import type { PolicyDocument, PolicyStep, Value } from './policy';
import type { Sizes } from './sizes';

export type Estimate = {
  prompts: number[]; // tokens at each step
  sent: number;
  peak: number;
  read: number | null; // tokens read from the cache; null where its rules are unknown
  cost: number | null; // micro-dollars
  compactions: number;
  edits: number; // steps at which something changed
};

const LOOK_BACK = 20;

/* What stands in place of what left: means over the sessions that the model was held against. */
export const STUB = 82;
const SUMMARY = 0.5; // of the most that it may take
const NOTE = 0.8; // the same, of a sliding window's

/** What stands, by the step at which it arrived. */
class Standing {
  fixed: readonly number[];
  users: number[];
  talk: number[];
  tools: number[][];
  sums: number[]; // of the tools
  total = 0;
  touched = Infinity; // the first step whose content changed just now, and the last
  last = 0;
  private known = 0; // tokens of all steps before `upTo`
  private upTo = 1;

  constructor(readonly sizes: Sizes) {
    const places = sizes.steps + 1;
    this.fixed = [0, ...sizes.fixed];
    this.users = new Array(places).fill(0);
    this.talk = new Array(places).fill(0);
    this.sums = new Array(places).fill(0);
    this.tools = new Array(places);
  }

  arrive(step: number): void {
    const { users, other, tools } = this.sizes;
    this.users[step] = users[step - 1];
    this.talk[step] = other[step - 1] - users[step - 1] - this.fixed[step];
    this.tools[step] = tools[step - 1];
    let sum = 0;
    for (const tokens of tools[step - 1]) sum += tokens;
    this.sums[step] = sum;
    this.total += other[step - 1] + sum;
    this.touched = Infinity;
    this.last = 0;
  }

  of(step: number): number {
    return this.fixed[step] + this.users[step] + this.talk[step] + this.sums[step];
  }

  removable(step: number): number {
    return this.of(step) - this.fixed[step];
  }

  /** Tokens of all that arrived before a step; asked for ascending steps it costs what lies between. */
  before(step: number): number {
    if (step < this.upTo) this.forget();
    while (this.upTo < step) this.known += this.of(this.upTo++);
    return this.known;
  }

  /** Steps behind which `before` has gone have changed. */
  forget(): void {
    this.known = 0;
    this.upTo = 1;
  }

  touch(step: number): void {
    if (step < this.touched) this.touched = step;
    if (step > this.last) this.last = step;
    if (step < this.upTo) this.forget();
  }

  /** Tokens that a changed prompt can still read: an entry is found within 20 blocks before a breakpoint,
      and there is one behind the last replacement. */
  unchanged(): number {
    const { blocks, hidden, rules } = this.sizes;
    let between = 0;
    for (let at = this.touched; at <= this.last; at++) between += blocks[at - 1];
    const found = rules !== 'anthropic' || between < LOOK_BACK;
    return hidden + (found ? this.before(this.touched) : 0);
  }
}

type Mark = { ripe: number; seen: number; rearm: number };
type Now = {
  standing: Standing;
  step: number;
  turns: number[];
  room: number;
  mark: Mark;
  parameters: Record<string, number>;
};
type Acts = (now: Now) => boolean; // whether history was summarized

function offload({ standing, step, turns, mark, parameters }: Now): boolean {
  const byTurn = (parameters.unit as Value) === 'turns';
  const ripe = (byTurn ? turns[step] : step) - parameters.age;
  const last = mark.ripe < 0 ? (byTurn ? 0 : 1) : mark.ripe;
  if (ripe - last < parameters.batch) return false;
  // The last tool call and its result stay.
  while (mark.seen + 1 < step && (byTurn ? turns[mark.seen + 1] : mark.seen + 1) <= ripe) {
    const at = ++mark.seen;
    let saved = 0;
    for (const tokens of standing.tools[at])
      if (tokens - STUB >= parameters.minimum) saved += tokens - STUB;
    if (!saved || !standing.sums[at]) continue;
    standing.touch(at);
    standing.sums[at] -= saved;
    standing.total -= saved;
  }
  mark.ripe = ripe;
  return false;
}

/** Takes out what came at steps `from` to `until` (not included) but for `stays`; the summary stands where it began. */
function summarize(
  standing: Standing,
  from: number,
  until: number,
  summary: number,
  stays: readonly number[],
): void {
  let gone = 0;
  for (let at = from; at < until; at++) {
    gone += standing.removable(at) - stays[at];
    standing.users[at] = stays[at];
    standing.talk[at] = standing.sums[at] = 0;
    standing.tools[at] = [];
  }
  standing.talk[from] = summary;
  standing.total += summary - gone;
  standing.touch(from);
  standing.last = from; // replacements behind it went into the summary
}

function compact({ standing, step, room, mark, parameters }: Now): boolean {
  const used = standing.total + standing.sizes.hidden;
  const limit = Math.trunc(parameters.trigger * room);
  if (used < limit || used < mark.rearm) return false;
  // The newest user messages stay, as far as they fit.
  const stays = new Array(step).fill(0);
  let left = parameters.user_tokens;
  let gone = 0;
  for (let at = step - 1; at >= 1; at--) {
    left -= standing.users[at];
    if (left >= 0) stays[at] = standing.users[at];
    gone += standing.removable(at) - stays[at];
  }
  mark.rearm = used + Math.trunc(parameters.rearm * room);
  if (
    used - gone + parameters.summary_tokens >= limit ||
    gone - parameters.summary_tokens < parameters.progress * used
  )
    return false;
  const summary = Math.min(Math.round(parameters.summary_tokens * SUMMARY), gone);
  summarize(standing, 1, step, summary, stays);
  mark.rearm = used - gone + summary + Math.trunc(parameters.rearm * room);
  return true;
}

const PER_STEP = 2; // messages: what the model said, and what came back

function cutWindow({ standing, step, room, mark, parameters }: Now): boolean {
  const budget = parameters.budget || room;
  const used = standing.total + (parameters.budget ? 0 : standing.sizes.hidden);
  const limit = Math.trunc(parameters.trigger * budget);
  if (used < limit || used < mark.rearm) return false;
  const target = Math.trunc(parameters.target * budget);
  let from = Math.max(2, 2 + Math.ceil((parameters.primers - 1) / PER_STEP));
  while (from > 2 && standing.before(from) - standing.before(2) > target / 2) from--;
  const wish = step - Math.floor(parameters.recents / PER_STEP) + 1;
  let excess = used + parameters.summary_tokens - target;
  let until = from;
  let gone = 0;
  while (until < step && (excess > 0 || until < wish)) {
    excess -= standing.removable(until);
    gone += standing.removable(until++);
  }
  mark.rearm = used + Math.trunc(parameters.rearm * budget);
  if (
    used - gone + parameters.summary_tokens >= limit ||
    gone - parameters.summary_tokens < parameters.progress * used
  )
    return false;
  const summary = Math.min(Math.round(parameters.summary_tokens * NOTE), gone);
  summarize(standing, from, until, summary, new Array(until).fill(0));
  mark.rearm = used - gone + summary + Math.trunc(parameters.rearm * budget);
  return true;
}

const ACTS: Record<string, Acts> = { offload, compact, window: cutWindow };

/** Sizes do not say which tool wrote what: an offload of some tools only cannot be estimated from them. */
const tellsTools = ({ strategy, parameters }: PolicyStep): boolean =>
  strategy === 'offload' &&
  ((parameters.only as string[]).length > 0 || (parameters.exclude as string[]).length > 0);

const TOPIC = 'compaction at a new topic';
const TASK = 'compaction once a task is done';

/** What of a policy the estimate leaves out, in words. */
export function notEstimated(document: PolicyDocument): string[] {
  const left = document.steps.flatMap((step) => {
    if (!(step.strategy in ACTS)) return [step.strategy];
    if (tellsTools(step)) return ['offload of some tools only'];
    const { parameters } = step;
    if (step.strategy === 'offload') return parameters.inputs ? [] : ['that inputs stay'];
    if (step.strategy === 'window') return parameters.messages ? ['a limit of messages'] : [];
    return [
      ...(parameters.on_new_topic ? [TOPIC] : []),
      ...(parameters.on_task_done ? [TASK] : []),
    ];
  });
  if (document.recite) left.push('recite');
  return [...new Set(left)];
}

/** Whether what is left out is much of what the policy does. `minor` are strategies that change little;
    in recorded sessions topics and tasks rarely end where it pays. */
export const isRough = (document: PolicyDocument, minor: readonly string[]): boolean =>
  notEstimated(document).some((one) => ![...minor, TOPIC, TASK].includes(one));

/** Human messages so far, at each step. */
function turnsOf(sizes: Sizes): number[] {
  const turns = [0, 1];
  for (let step = 2; step <= sizes.steps; step++)
    turns[step] = turns[step - 1] + (sizes.users[step - 1] > 0 ? 1 : 0);
  return turns;
}

/** Works with the steps of a session once: about a microsecond each. */
export function estimate(sizes: Sizes, document: PolicyDocument): Estimate {
  const standing = new Standing(sizes);
  const turns = turnsOf(sizes);
  const room = sizes.window - Math.min(document.reserve, Math.floor(sizes.window / 4));
  const acting = document.steps
    .filter((step) => step.strategy in ACTS && !tellsTools(step))
    .map((step) => ({
      act: ACTS[step.strategy],
      parameters: step.parameters as Now['parameters'],
      mark: { ripe: -1, seen: 0, rearm: 0 },
    }));
  const prompts: Prompt[] = [];
  let compactions = 0;
  let edits = 0;
  for (let step = 1; step <= sizes.steps; step++) {
    standing.arrive(step);
    for (const { act, parameters, mark } of acting)
      if (act({ standing, step, turns, room, mark, parameters })) compactions++;
    const edited = standing.touched !== Infinity;
    if (edited) edits++;
    prompts.push({
      total: sizes.hidden + standing.total,
      unchanged: edited ? standing.unchanged() : null,
    });
  }
  const totals = prompts.map((prompt) => prompt.total);
  return {
    prompts: totals,
    sent: totals.reduce((sum, one) => sum + one, 0),
    peak: Math.max(0, ...totals),
    ...cost(sizes, prompts, document.ttl),
    compactions,
    edits,
  };
}
