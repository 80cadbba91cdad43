/* One compaction to judge, as its page gives it. */
import type { Kind } from '../web/kinds';
import { marks } from '../web/marks';

export const states = ['kept', 'retrievable', 'lost', 'unsupported'] as const;
export type FactState = (typeof states)[number];
export type Fact = {
  key: string;
  fact: string;
  kind: string;
  state: FactState;
  weight: number;
  block: string | null; // "118" or "118.2": the last replaced block that holds it
  needed: number | null; // a later step that named it
};
/** A section that a summary is asked for; `covered` of `of` things that belong into it. */
export type Part = {
  name: string;
  title: string;
  state: 'present' | 'none' | 'missing' | 'unasked';
  covered: number | null;
  of: number | null;
};
export type SourceBlock = {
  entry: number;
  name: string;
  role: string;
  kind: Kind;
  type: string;
  tool: string;
  file: string;
  error: boolean;
  tokens: number;
  chars: number;
  preview: string;
  url: string;
};
export type Summary = {
  tokens: number;
  parts: { title: string; text: string }[];
  left_out: number;
};
/** Something after the compaction that it may be the cause of; `earlier_step` is where the same stood before. */
type Sign = {
  what: string;
  kind: 'reread' | 'repeat' | 'error' | 'edit' | 'correction';
  step: number;
  preview: string;
  url: string;
  earlier_step: number | null;
  earlier_url: string;
};
export type Missed = {
  first_step: number;
  last_step: number;
  all: number;
  said: string;
  signs: Sign[];
};
export type Size = { tokens: number; basis: string; source: string };
type Scores = Record<string, number | boolean>;
export type Given = {
  by: string;
  scores: Scores;
  verdict: string;
  note: string;
  marks: Record<string, FactState>;
};
export type Props = {
  id: string;
  reader: number;
  title: string;
  reason: string;
  policy: string;
  step: number;
  trigger: string;
  sizes: Size[];
  today: number;
  left: number;
  double: boolean;
  mode: 'judge' | 'change' | 'look';
  why: string;
  seconds: number | null;
  until: string;
  own: Given | null;
  others: Given[];
  verdict: { tone: 'good' | 'bad' | 'neutral'; sentence: string; detail: string };
  advice: { text: string; button: string; url: string; lab_url: string } | null;
  suggested: Record<string, { value: number | boolean | string | null; because: string }>;
  taken_out: { tokens: number; left_before: number }; // of the prompt before; had left before, unstated
  unseen: number | null; // tokens that the log says were replaced, and does not hold
  blocks: SourceBlock[];
  summaries: Summary[];
  ledger: { facts: Fact[]; sections: Part[]; score: number | null } | null;
  missed: Missed;
  urls: Record<
    | 'blocks'
    | 'submit'
    | 'renew'
    | 'skip'
    | 'release'
    | 'next'
    | 'queue'
    | 'back'
    | 'after'
    | 'revision',
    string
  >;
};

export const signs: Record<FactState, [glyph: string, means: string]> = {
  kept: ['✓', 'the summary, or what stands beside it, says it'],
  retrievable: ['↩', 'a reference to its original stands there'],
  lost: [marks.lost.symbol, 'nothing that stands says it'],
  unsupported: ['!', 'the summary says it, and nothing that it replaced does'],
};

/** What a reader must look at comes first. */
const order: FactState[] = ['lost', 'unsupported', 'retrievable', 'kept'];
export const bySeverity = (facts: Fact[]): Fact[] =>
  order.flatMap((state) => facts.filter((one) => one.state === state));

export type Field = {
  name: string;
  title: string;
  asks: string;
  choices: [value: number | boolean | string, label: string][];
};

const scale = (worst: string, best: string): Field['choices'] =>
  [1, 2, 3, 4, 5].map((n) => [n, n === 1 ? worst : n === 5 ? best : '']);

export const fields: Field[] = [
  {
    name: 'goal',
    title: 'Goal',
    asks: 'Does it state the task as the user meant it?',
    choices: scale('gone', 'kept'),
  },
  {
    name: 'constraints',
    title: 'Constraints',
    asks: 'What the user asked for, forbade or decided',
    choices: scale('gone', 'kept'),
  },
  {
    name: 'state',
    title: 'State of work',
    asks: 'What is done, changed, failing; files and errors',
    choices: scale('gone', 'kept'),
  },
  {
    name: 'next',
    title: 'Next steps',
    asks: 'Could the agent go on at the right place?',
    choices: scale('no', 'at once'),
  },
  {
    name: 'invention',
    title: 'Invents nothing',
    asks: 'It claims only what the original holds',
    choices: [
      [true, 'yes'],
      [false, 'no'],
    ],
  },
  {
    name: 'verdict',
    title: 'Verdict',
    asks: 'Pass: good as it is. Fix: usable, something is missing. Fail: the agent would go wrong.',
    choices: [
      ['pass', 'pass'],
      ['fix', 'fix'],
      ['fail', 'fail'],
    ],
  },
];

/** Keys of facts that the reviewer found begin with this; the text follows. */
export const ADDED = '+';
export const longestAdded = 200;

export const addedFact = (key: string, state: FactState): Fact => ({
  key,
  fact: key.slice(ADDED.length),
  kind: 'added',
  state,
  weight: 0,
  block: null,
  needed: null,
});

/** "m118.0" and "118.0" are called "118", as addresses call them. */
export const blockName = (name: string | null): string =>
  (name ?? '').replace(/^m(?=\d)/, '').replace(/\.0$/, '');

export type Filter = 'all' | 'facts' | 'errors' | 'user' | 'files';
export const filters: [Filter, string][] = [
  ['all', 'All'],
  ['facts', 'With facts'],
  ['errors', 'Errors'],
  ['user', 'User'],
  ['files', 'Files'],
];

export function passes(block: SourceBlock, filter: Filter, facts: Fact[]): boolean {
  if (filter === 'facts') return facts.length > 0;
  if (filter === 'errors') return block.error || facts.some((one) => one.kind === 'error');
  if (filter === 'user') return block.kind === 'user';
  return filter === 'all' || block.kind === 'file' || block.file !== '';
}

/** What a reader follows is open at first: what people and the model said. */
export const isTalk = (block: SourceBlock): boolean =>
  block.type === 'text' && ['user', 'assistant', 'summary'].includes(block.kind);

const countedIn = ({ name }: Part): string =>
  name === 'pending_tasks' ? 'open todos named' : 'replaced user messages covered';

/** What of it may be missing, in words: a suggestion, as the facts are. */
export function doubts(parts: Part[]): string[] {
  const missing = parts.filter((one) => one.state === 'missing').map((one) => one.title);
  const short = parts
    .filter((one) => one.of !== null && (one.covered ?? 0) < one.of)
    .map((one) => `${one.covered ?? 0} of ${one.of} ${countedIn(one)}`);
  return [...(missing.length ? [`no section ${missing.join(', ')}`] : []), ...short];
}
