/* The reservation of the item: held longer while somebody works, given up when the page is left. */
import { problemFrom, send, type Problem } from '../../request';
import type { Props } from './review';

type Held = { seconds: number; until: string };
const every = 60_000;

export class Reservation {
  left = $state(0); // seconds
  problem = $state.raw<Problem | null>(null);
  #ends = 0;
  #until: string;
  #worked = false;
  #asking = false;
  over = false; // submitted, skipped, or never ours

  constructor(readonly props: Props) {
    this.#until = props.until;
    this.over = props.mode !== 'judge';
    this.#holds(props.seconds ?? 0);
  }

  #holds(seconds: number): void {
    this.#ends = performance.now() + seconds * 1000;
    this.left = Math.round(seconds);
  }

  /** Until the returned function is called. */
  keep(): () => void {
    if (this.over) return () => {};
    const worked = () => {
      this.#worked = true;
      if (this.left <= 0) void this.renew();
    };
    const leave = () => this.#release();
    const back = (event: PageTransitionEvent) => event.persisted && void this.renew();
    const clock = setInterval(() => (this.left = Math.max(0, Math.round((this.#ends - performance.now()) / 1000))), 1000);
    const renewal = setInterval(() => this.#worked && void this.renew(), every);
    document.addEventListener('keydown', worked);
    document.addEventListener('pointerdown', worked);
    addEventListener('pagehide', leave);
    addEventListener('pageshow', back);
    return () => {
      clearInterval(clock);
      clearInterval(renewal);
      document.removeEventListener('keydown', worked);
      document.removeEventListener('pointerdown', worked);
      removeEventListener('pagehide', leave);
      removeEventListener('pageshow', back);
    };
  }

  async renew(): Promise<void> {
    if (this.#asking || this.over) return;
    this.#asking = true;
    this.#worked = false;
    try {
      const held = await send<Held>(this.props.urls.renew, undefined);
      this.#until = held.until;
      this.#holds(held.seconds);
      this.problem = null;
    } catch (error) {
      this.problem = problemFrom(error);
    } finally {
      this.#asking = false;
    }
  }

  /** Says until when this page held it: a page that was loaded anew holds it for longer, and keeps it. */
  #release(): void {
    if (this.over) return;
    const token = document.querySelector<HTMLMetaElement>('meta[name="csrf-token"]')?.content ?? '';
    void fetch(this.props.urls.release, { method: 'POST', keepalive: true, headers: { 'content-type': 'application/json', 'x-csrftoken': token }, body: JSON.stringify({ until: this.#until }) });
  }
}

export const clock = (seconds: number): string => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
