/* The keys of a review: fields and facts; the note keeps its own. */
import { shortcuts, type Shortcut } from '../../shell/keyboard';
import type { Judging } from './judging.svelte';
import { fields, states } from './review';

export type Does = { done(): void; skip(): void; back(): void; source(): void; add(): void; focusField(): void; focusFact(): void; busy(): boolean };

export function reviewKeys(judging: Judging, does: Does): () => void {
  const key = (keys: string[], what: string, run: (event: KeyboardEvent) => void, repeats = false): Shortcut => ({
    section: 'Review', keys, does: what, repeats,
    run: (event) => !does.busy() && run(event),
  });
  const inFacts = () => document.activeElement?.closest('.review-facts') !== null && judging.selected !== '';
  const digit = (event: KeyboardEvent) => {
    const n = Number(event.key);
    if (inFacts()) {
      if (states[n - 1]) judging.mark(judging.selected, states[n - 1]!);
      return;
    }
    const choice = fields[judging.field]?.choices[n - 1];
    if (choice) judging.choose(judging.field, choice[0]);
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
        key([...'123456789'], 'Choose in the field; among the facts, say what one is', digit),
        key(['y'], 'The fact is as the ledger says; next fact', judge(true)),
        key(['n'], 'It is not, or take an added one away', judge(false)),
        key(['m'], 'Add the selected text as a fact that was missed', does.add),
        key(['Ctrl+Enter'], 'Done: keep it, and on to the next', does.done),
      ]
    : [];
  return shortcuts(
    ...writing,
    key(['ArrowDown'], 'Next field', field(1), true),
    key(['ArrowUp'], 'Previous field', field(-1), true),
    key(['ArrowRight'], judging.props.mode === 'judge' ? 'Skip this one' : 'Next', does.skip),
    key(['ArrowLeft'], 'Back to the one before', does.back),
    key(['j'], 'Next fact', fact(1), true),
    key(['k'], 'Previous fact', fact(-1), true),
    key(['h'], 'Show the source of the fact', does.source),
  );
}
