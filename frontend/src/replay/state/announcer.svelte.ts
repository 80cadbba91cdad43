/* What has happened since the last sentence, in one sentence, no more often than one can listen to. */
import * as format from '../../web/format';
import { markOf } from '../../web/marks';
import type { Manifest, SessionEvent } from '../manifest/manifest';

const every = 3000;
const named = 3; // revisions in one sentence

const revised = (event: SessionEvent): string => {
  const saved =
    event.before !== null && event.after !== null
      ? ` ${format.exactChange(event.after - event.before)}`
      : '';
  return `r${event.revision} ${markOf(event.kind).name.toLowerCase()}${saved}`;
};

/** "Next call, S13 · 45,210 tokens · r3 offload −12,300": which context has that size, and what came of late. */
export function sentence(
  manifest: Manifest,
  size: number,
  revisions: readonly SessionEvent[],
): string {
  const parts = [
    `Next call, step ${manifest.session.steps + 1}`,
    `${format.exact(Math.round(size))} tokens`,
  ];
  if (revisions.length > named) parts.push(`${revisions.length - named} revisions`);
  parts.push(...revisions.slice(-named).map(revised));
  return parts.join(' · ');
}

const newest = (events: readonly SessionEvent[]) =>
  events.reduce((most, event) => Math.max(most, event.revision ?? 0), 0);

export class Announcer {
  text = $state('');
  #known = 0; // the newest revision that needs no word
  #revisions: SessionEvent[] = [];
  #pending: { manifest: Manifest; size: number } | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** A run as it is when it is opened: nothing of it is news. */
  begin({ entries, events }: Manifest): void {
    this.#known = newest(events);
    for (let i = 0; i < entries.count; i++)
      this.#known = Math.max(this.#known, entries.edit[i], entries.closed[i]);
  }

  /** Something came. */
  note(manifest: Manifest, size: number): void {
    this.#revisions.push(
      ...manifest.events.filter((event) => event.revision !== null && event.revision > this.#known),
    );
    this.#known = Math.max(this.#known, newest(manifest.events));
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
