/* What is too much work for every step of a scrub: done once the steps pause, and once a second
   while they do not. */

const rest = 120; // ms without a step
const most = 1000; // ms from the first step on

export class Settled {
  #since = 0;
  #waiting: ReturnType<typeof setTimeout> | undefined;

  /** Runs a task, in place of the one that waits. */
  run(task: () => void): void {
    clearTimeout(this.#waiting);
    const now = performance.now();
    this.#since ||= now;
    const wait = Math.min(rest, Math.max(0, this.#since + most - now));
    this.#waiting = setTimeout(() => {
      this.#since = 0;
      task();
    }, wait);
  }

  cancel(): void {
    clearTimeout(this.#waiting);
    this.#since = 0;
  }
}
