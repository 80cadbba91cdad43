/* Plays the steps. */
import type { Replay } from './replay.svelte';

const speeds = [0.5, 1, 2, 4, 8];
const stepMs = 700;

export class Player {
  playing = $state(false);
  speed = $state(1);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly replay: Replay) {}

  toggle(): void {
    if (this.playing) return this.stop();
    const { manifest } = this.replay;
    if (!manifest) return;
    if (this.replay.step >= manifest.last) this.replay.go(1);
    this.playing = true;
    this.#wait();
  }

  stop(): void {
    this.playing = false;
    clearTimeout(this.#timer);
  }

  faster(by: 1 | -1): void {
    this.speed = speeds[Math.max(0, Math.min(speeds.length - 1, speeds.indexOf(this.speed) + by))];
  }

  #wait(): void {
    this.#timer = setTimeout(() => {
      const last = this.replay.manifest?.last ?? 1;
      this.replay.go(this.replay.step + 1);
      if (this.replay.step >= last || document.hidden) this.stop();
      if (this.replay.step >= last && this.replay.manifest?.session.live) this.replay.follow();
      if (this.playing) this.#wait();
    }, stepMs / this.speed);
  }
}
