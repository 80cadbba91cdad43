/* The keys of a review: fields and facts; the note keeps its own. */
import { addShortcuts, type Shortcut } from '../web/keyboard/registry';
import type { Judging } from './judging.svelte';
import { fields, states } from './review';

/** What can be scrolled by keys: what was replaced, and the summary. */
export type Pane = 'source' | 'summary';

export type Does = {
  done(): void;
  skip(): void;
  back(): void;
  source(): void;
  add(): void;
  read(pane: Pane): void;
  scroll(by: number): void;
  focusField(): void;
  focusFact(): void;
  busy(): boolean;
};

export function reviewKeys(judging: Judging, does: Does): () => void {
  const key = (
    keys: string[],
    what: string,
    run: (event: KeyboardEvent) => void,
    repeats = false,
  ): Shortcut => ({
    section: 'Review',
    keys,
    does: what,
    repeats,
    run: (event) => !does.busy() && run(event),
  });
  const inFacts = () =>
    document.activeElement?.closest('.review-facts') !== null && judging.selected !== '';
  const digit = (event: KeyboardEvent) => {
    const n = Number(event.key);
    if (inFacts()) {
      if (!states[n - 1]) return;
      judging.mark(judging.selected, states[n - 1]!);
      judging.move(1);
      return does.focusFact();
    }
    const choice = fields[judging.field]?.choices[n - 1];
    if (!choice) return;
    judging.choose(judging.field, choice[0]);
    // The note comes last, and is gone to by hand: there digits are text.
    if (judging.field < fields.length - 1) judging.field += 1;
    does.focusField();
  };
  const field = (by: number) => () => {
    // From the facts one comes back to the field one was at.
    if (!inFacts()) judging.field = Math.max(0, Math.min(fields.length, judging.field + by));
    does.focusField();
  };
  const fact = (by: number) => () => {
    judging.move(by);
    does.focusFact();
  };
  const judge = (right: boolean) => () => {
    if (!judging.selected) judging.move(0);
    const one = judging.fact(judging.selected);
    if (!one) return;
    if (right) {
      judging.mark(one.key, one.state);
      judging.move(1);
    } else judging.reject(one.key);
    does.focusFact();
  };
  const writing: Shortcut[] = judging.writes
    ? [
        key(
          [...'123456789'],
          'Choose in the field; among the facts, say what one is; then on to the next',
          digit,
        ),
        key(['y'], 'The fact is as the ledger says; next fact', judge(true)),
        key(
          ['n'],
          'It is not: a digit then says what it is; or take an added one away',
          judge(false),
        ),
        key(['m'], 'Add a fact that was missed: the selected text, or what you type', does.add),
        key(['Ctrl+Enter'], 'Done: keep it, and on to the next', does.done),
      ]
    : [];
  return addShortcuts(
    ...writing,
    key(['ArrowDown'], 'Next field', field(1), true),
    key(['ArrowUp'], 'Previous field', field(-1), true),
    key(['ArrowRight'], judging.props.mode === 'judge' ? 'Skip this one' : 'Next', does.skip),
    key(['ArrowLeft'], 'Back to the one before', does.back),
    key(['j'], 'Next fact', fact(1), true),
    key(['k'], 'Previous fact', fact(-1), true),
    key(['h'], 'Show the source of the fact; again, its place in the summary', does.source),
    key(['['], 'Read what was replaced', () => does.read('source')),
    key([']'], 'Read the summary', () => does.read('summary')),
    key(
      ['Space', 'PageDown'],
      'Scroll it on (what was replaced, unless you read the summary)',
      () => does.scroll(1),
      true,
    ),
    key(['Shift+Space', 'PageUp'], 'Scroll it back', () => does.scroll(-1), true),
  );
}
