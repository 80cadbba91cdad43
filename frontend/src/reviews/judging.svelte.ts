/* What a reviewer has said so far, what is selected, and what of the original is open. */
import { tick } from 'svelte';
import { SvelteMap, SvelteSet } from 'svelte/reactivity';
import { ask, withQuery } from '../web/request';
import { needles } from './marked';
import {
  ADDED,
  addedFact,
  blockName,
  bySeverity,
  fields,
  isTalk,
  longestAdded,
  passes,
  type Fact,
  type FactState,
  type Filter,
  type Props,
  type SourceBlock,
} from './review';

type Shows = 'line' | 'facts' | 'part' | 'whole';
type Text = { text: string; left: number };
type Draft = {
  chosen: Record<string, number | boolean | string>;
  note: string;
  marks: Record<string, FactState>;
};

export class Judging {
  chosen = $state<Record<string, number | boolean | string>>({});
  note = $state('');
  marks = $state<Record<string, FactState>>({});
  field = $state(0); // the rubric's field that digits choose in; after the last comes the note
  selected = $state('');
  pointed = $state('');
  waiting = $state(''); // the fact that was called wrong: a digit says what it is
  typed = $state<string | null>(null); // a missed fact that is being typed
  filter = $state<Filter>('all');
  only = $state<FactState | ''>('');
  readonly texts = new SvelteMap<number, Text>();
  readonly shows = new SvelteMap<number, Shows>();
  readonly seen = new SvelteSet<number>();
  readonly facts: Fact[];
  readonly byBlock = new Map<string, Fact[]>();
  #wanted = new Set<number>();

  constructor(readonly props: Props) {
    this.facts = bySeverity(props.ledger?.facts ?? []);
    for (const one of this.facts) {
      const name = blockName(one.block);
      if (name) this.byBlock.set(name, [...(this.byBlock.get(name) ?? []), one]);
    }
    if (props.own)
      this.#take({
        chosen: { ...props.own.scores, verdict: props.own.verdict },
        note: props.own.note,
        marks: props.own.marks,
      });
    const draft = this.writes ? sessionStorage.getItem(this.#draftKey) : null;
    if (draft) this.#take(JSON.parse(draft) as Draft);
  }

  get writes(): boolean {
    return this.props.mode !== 'look';
  }

  get #draftKey(): string {
    return `review:${this.props.reader}:${this.props.id}`; // the next person to sign in in this tab must not see it
  }

  #take(draft: Draft): void {
    this.chosen = { ...draft.chosen };
    this.note = draft.note;
    this.marks = { ...draft.marks };
  }

  /** What is typed outlives a reload and a sign-out, in this tab. */
  keep(): void {
    const draft: Draft = { chosen: this.chosen, note: this.note, marks: this.marks };
    if (this.writes) sessionStorage.setItem(this.#draftKey, JSON.stringify(draft));
  }

  forget(): void {
    sessionStorage.removeItem(this.#draftKey);
  }

  choose(field: number, value: number | boolean | string): void {
    if (this.writes) this.chosen[fields[field]!.name] = value;
  }

  get missing(): number[] {
    return fields.flatMap((one, i) => (this.chosen[one.name] === undefined ? [i] : []));
  }

  readonly added = $derived(
    Object.keys(this.marks)
      .filter((key) => key.startsWith(ADDED))
      .map((key) => addedFact(key, this.marks[key]!)),
  );
  readonly listed = $derived.by(() => [
    ...this.added,
    ...this.facts.filter((one) => !this.only || one.state === this.only),
  ]);
  readonly #byKey = $derived.by(
    () => new Map([...this.added, ...this.facts].map((one) => [one.key, one])),
  );
  readonly needles = $derived.by(() => needles([...this.added, ...this.facts]));
  readonly blocks = $derived.by(() =>
    this.props.blocks.filter((one) => passes(one, this.filter, this.factsOf(one))),
  );

  factsOf = (block: SourceBlock): Fact[] => this.byBlock.get(block.name) ?? [];
  fact = (key: string): Fact | undefined => this.#byKey.get(key);
  stateOf = (key: string): FactState => this.marks[key] ?? this.fact(key)?.state ?? 'kept';

  move(by: number): void {
    const now = this.listed.findIndex((one) => one.key === this.selected);
    const next = this.listed[Math.max(0, Math.min(this.listed.length - 1, now < 0 ? 0 : now + by))];
    if (next) this.selected = next.key;
    this.waiting = '';
  }

  mark(key: string, state: FactState): void {
    this.waiting = '';
    if (this.writes) this.marks[key] = state;
  }

  /** The suggestion is wrong: the likeliest other, which a digit then changes. What was added goes. */
  reject(key: string): void {
    const fact = this.fact(key);
    if (!fact || !this.writes) return;
    if (key.startsWith(ADDED)) {
      this.move(1);
      delete this.marks[key];
    } else {
      this.mark(key, fact.state === 'lost' || fact.state === 'unsupported' ? 'kept' : 'lost');
      this.waiting = key;
    }
  }

  /** A fact that the ledger missed: what is lost of the original, or what the summary made up. */
  add(text: string, fromSummary: boolean): boolean {
    const fact = text.replace(/\s+/g, ' ').trim().slice(0, longestAdded);
    if (!fact || !this.writes) return false;
    const stands = this.props.summaries.some((one) =>
      one.parts.some((part) => part.text.toLowerCase().includes(fact.toLowerCase())),
    );
    this.marks[ADDED + fact] = fromSummary ? 'unsupported' : stands ? 'kept' : 'lost';
    this.selected = ADDED + fact;
    return true;
  }

  /** The same of what was typed, if anything was; the field closes. */
  addTyped(): boolean {
    const text = this.typed ?? '';
    this.typed = null;
    return this.add(text, false);
  }

  showsOf(block: SourceBlock): Shows {
    return (
      this.shows.get(block.entry) ??
      (this.filter === 'facts'
        ? 'facts'
        : isTalk(block) || this.filter === 'user'
          ? 'part'
          : 'line')
    );
  }

  toggle(block: SourceBlock): void {
    this.shows.set(block.entry, this.showsOf(block) === 'line' ? 'whole' : 'line');
    void this.want(block.entry);
  }

  /** Texts come as blocks come into view, many in one request. */
  see(entry: number): void {
    if (this.texts.has(entry) || this.#wanted.has(entry)) return;
    if (!this.#wanted.size) setTimeout(() => void this.#fetch(), 30);
    this.#wanted.add(entry);
  }

  async #fetch(): Promise<void> {
    const entries = [...this.#wanted].slice(0, 60);
    try {
      await this.#bring(entries);
    } finally {
      for (const entry of entries) this.#wanted.delete(entry);
      if (this.#wanted.size) setTimeout(() => void this.#fetch(), 30);
    }
  }

  async #bring(entries: number[], whole = ''): Promise<void> {
    const found = await ask<{ texts: Record<string, Text> }>(
      withQuery(this.props.urls.blocks, { at: entries.join(','), whole }),
    );
    for (const [entry, text] of Object.entries(found.texts)) this.texts.set(Number(entry), text);
  }

  async want(entry: number, whole = false): Promise<void> {
    const known = this.texts.get(entry);
    if (!known || (whole && known.left)) await this.#bring([entry], whole ? '1' : '');
  }

  /** Opens the block that holds a fact, in full if that is what it takes; null where none does. */
  async open(fact: Fact): Promise<SourceBlock | null> {
    const block = this.props.blocks.find((one) => one.name === blockName(fact.block));
    if (!block) return null;
    if (!this.blocks.includes(block)) this.filter = 'all';
    this.shows.set(block.entry, 'whole');
    await this.want(block.entry);
    const text = this.texts.get(block.entry);
    if (text?.left && !text.text.toLowerCase().includes(fact.fact.toLowerCase()))
      await this.want(block.entry, true);
    await tick();
    return block;
  }
}
