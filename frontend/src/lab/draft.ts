/* A draft with its history: what a setting was before it was moved. */
import { isSame, type PolicyDocument } from './policy';

const together = 800; // ms: moves of one setting in this time are undone at once
const most = 100;

export class Undo {
  #before: PolicyDocument[] = [];
  #path = '';
  #at = 0;

  /** Remembers the draft before a change of a setting. */
  keep(document: PolicyDocument, path: string, now: number): void {
    const goesOn = path === this.#path && now - this.#at < together;
    this.#path = path;
    this.#at = now;
    if (goesOn || (this.#before.length && isSame(this.#before.at(-1)!, document))) return;
    this.#before = [...this.#before, document].slice(-most);
  }

  /** The draft before the last change, or null. */
  back(): PolicyDocument | null {
    this.#path = '';
    return this.#before.pop() ?? null;
  }
}
