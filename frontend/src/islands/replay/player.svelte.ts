/* Plays the steps, and follows a session that still grows. */
import { watchTopic } from '../../shell/live';
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
      else this.#wait();
    }, stepMs / this.speed);
  }
}

/** Fetches the manifest anew when the session moves on; at most one request waits behind another. */
export function followSession(replay: Replay, id: string): () => void {
  let wanted = false;
  let running = false;
  const renew = async () => {
    if (running) {
      wanted = true;
      return;
    }
    running = true;
    await replay.load();
    running = false;
    if (wanted) {
      wanted = false;
      setTimeout(() => void renew(), 400);
    }
  };
  return watchTopic(`session:${id}`, (version) => {
    if (version !== null && version === replay.manifest?.session.version) return;
    void renew();
  });
}
