/* What has happened since the last sentence, in one sentence, no more often than one can listen to. */
import * as format from '../../format';
import { shapeOf } from './marks';
import type { Manifest, SessionEvent } from './manifest';

const every = 3000;
const named = 3; // revisions in one sentence

const revised = (event: SessionEvent): string => {
  const saved = event.before !== null && event.after !== null ? ` ${format.exactChange(event.after - event.before)}` : '';
  return `r${event.revision} ${shapeOf(event.kind)[1].toLowerCase()}${saved}`;
};

/** "S12 · 45,210 tokens · r3 offload −12,300"; empty where nothing is worth a word. */
export function sentence(manifest: Manifest, size: number, revisions: readonly SessionEvent[]): string {
  const parts = [manifest.session.steps ? `S${manifest.session.steps}` : '', `${format.exact(Math.round(size))} tokens`];
  parts.push(...revisions.slice(0, named).map(revised));
  if (revisions.length > named) parts.push(`${revisions.length - named} more`);
  return parts.filter(Boolean).join(' · ');
}

export class Announcer {
  text = $state('');
  #revisions: SessionEvent[] = [];
  #pending: { manifest: Manifest; size: number } | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Something came: `head` is the newest revision that was known before. */
  note(manifest: Manifest, size: number, head: number): void {
    this.#revisions.push(...manifest.events.filter((event) => event.revision !== null && event.revision > head));
    this.#pending = { manifest, size };
    if (this.#timer === undefined) this.#say();
  }

  #say(): void {
    this.#timer = undefined;
    if (!this.#pending) return;
    const { manifest, size } = this.#pending;
    this.text = sentence(manifest, size, this.#revisions);
    this.#pending = null;
    this.#revisions = [];
    this.#timer = setTimeout(() => this.#say(), every);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
