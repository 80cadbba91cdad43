/* Notes that people left on steps. */
import { ask, problemFrom, send, type Problem } from '../../web/request';

export type StepNote = {
  id: number;
  step: number;
  text: string;
  author: string;
  created: string;
  deletable: boolean;
};
type Answer = { notes: StepNote[] };

export class Notes {
  list = $state.raw<StepNote[]>([]);
  problem = $state.raw<Problem | null>(null);
  writing = $state(false); // the form is open
  steps = $derived([...new Set(this.list.map((note) => note.step))]);

  constructor(
    readonly address: string,
    readonly writable: boolean,
  ) {}

  load(): Promise<boolean> {
    return this.#take(() => ask<Answer>(this.address));
  }

  add(step: number, text: string): Promise<boolean> {
    return this.#take(() => send<Answer>(this.address, { step, text }));
  }

  remove(note: StepNote): Promise<boolean> {
    return this.#take(() => send<Answer>(`${this.address}/${note.id}`, undefined, 'DELETE'));
  }

  async #take(request: () => Promise<Answer>): Promise<boolean> {
    try {
      this.list = (await request()).notes;
      this.problem = null;
      return true;
    } catch (error) {
      this.problem = problemFrom(error);
      return false;
    }
  }
}
