/* The reservation of the item: taken with the first key or judgement, for looking takes nothing from others; extended
   while the reviewer is active, released when the page is left. */
import { problemFrom, send, type Problem } from '../web/request';
import type { Props } from './review';

type Held = { seconds: number; until: string };
const most = 60; // seconds after which it is extended, while the reviewer is active

/** What takes a reservation again at once, and what only shows that someone is reading. */
const acts = ['keydown', 'pointerdown', 'input'];
/** Keys judge anywhere, except the one that skips: a reservation would take the skip back. A click judges only where it
    rates or marks. */
const judges = (event: Event): boolean =>
  (event instanceof KeyboardEvent && event.key !== 'ArrowRight') ||
  event.type === 'input' ||
  (event.target instanceof Element &&
    event.target.closest('.review-rubric fieldset, .review-rubric textarea, .review-facts') !==
      null);
const signsOfLife = ['wheel', 'pointermove', 'touchmove'];

export class Reservation {
  left = $state(0); // seconds
  problem = $state.raw<Problem | null>(null);
  #ends = 0;
  #asked = 0; // when it was last held, or refused
  #every = most; // of a short reservation, a third
  #until: string;
  #worked = false;
  begun = $state(false); // held once by this page
  #asking = false;
  over = false; // submitted, skipped, or never ours

  constructor(readonly props: Props) {
    this.#until = props.until;
    this.over = props.mode !== 'judge';
    this.#holds(props.seconds ?? 0);
  }

  #holds(seconds: number): void {
    if (seconds > 0) this.begun = true;
    this.#ends = performance.now() + seconds * 1000;
    this.left = Math.round(seconds);
    this.#asked = performance.now();
    this.#every = Math.min(most, seconds / 3);
  }

  get ranOut(): boolean {
    return this.left <= 0 && !this.over && this.begun;
  }

  /** Until the returned function is called. */
  keep(): () => void {
    if (this.over) return () => {};
    const worked = (event: Event) => {
      if (!this.begun && !judges(event)) return;
      this.#worked = true;
      if (this.left <= 0) void this.renew();
    };
    const here = () => (this.#worked = true);
    const leave = () => this.#release();
    const back = (event: PageTransitionEvent) => event.persisted && this.begun && void this.renew();
    const clock = setInterval(() => {
      const now = performance.now();
      this.left = Math.max(0, Math.round((this.#ends - now) / 1000));
      if (this.#worked && now - this.#asked >= this.#every * 1000) void this.renew();
    }, 1000);
    for (const act of acts) document.addEventListener(act, worked);
    for (const sign of signsOfLife) document.addEventListener(sign, here, { passive: true });
    addEventListener('pagehide', leave);
    addEventListener('pageshow', back);
    return () => {
      clearInterval(clock);
      for (const act of acts) document.removeEventListener(act, worked);
      for (const sign of signsOfLife) document.removeEventListener(sign, here);
      removeEventListener('pagehide', leave);
      removeEventListener('pageshow', back);
    };
  }

  async renew(): Promise<void> {
    if (this.#asking || this.over) return;
    this.#asking = true;
    this.#worked = false;
    this.#asked = performance.now();
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

  /** Says until when this page held it: a page that was reloaded holds it for longer, and keeps it. */
  #release(): void {
    if (this.over || !this.begun) return;
    const token = document.querySelector<HTMLMetaElement>('meta[name="csrf-token"]')?.content ?? '';
    void fetch(this.props.urls.release, {
      method: 'POST',
      keepalive: true,
      headers: { 'content-type': 'application/json', 'x-csrftoken': token },
      body: JSON.stringify({ until: this.#until }),
    });
  }
}

/** In minutes, and to the second only when nearly over. */
export const clock = (seconds: number): string =>
  seconds > 60
    ? `${Math.ceil(seconds / 60)} m`
    : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
