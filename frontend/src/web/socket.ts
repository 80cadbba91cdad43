/* One socket for the page. It carries only "this topic is at version n"; subscribers fetch the rest. */

import { removeContent } from './ended';

type Watch = (version: number | null) => void; // null: the socket is down, look for yourself
type State = keyof typeof states;

// A page is right again within 10 s of a lost hint or connection: these add up to less.
const pollEvery = 8000;
const pulseEvery = 5000;
const answerWithin = 3000;
const signedOut = 4401; // or signed in no more: only a new page can help
const tooMany = 4429; // this user has too many pages open: come back as rarely as possible
const states = {
  live: ['live', 'Changes arrive as they happen'],
  waiting: ['reconnecting', `No connection: looking every ${pollEvery / 1000} s`],
  crowded: [
    `every ${pollEvery / 1000} s`,
    `You have too many pages open: this one looks every ${pollEvery / 1000} s. Close some of them.`,
  ],
  ended: ['no access', 'You no longer have access'],
};
const patient = 9; // attempts after which the pause no longer grows
const watches = new Map<string, Set<Watch>>();
let socket: WebSocket | undefined;
let attempt = 0;
let live = false;
let ended = false;
let poll: ReturnType<typeof setInterval> | undefined;
let pulse: ReturnType<typeof setInterval> | undefined;
let silence: ReturnType<typeof setTimeout> | undefined;
let again: ReturnType<typeof setTimeout> | undefined;

function show(state: State): void {
  for (const pill of document.querySelectorAll<HTMLElement>('[data-live-pill]')) {
    pill.hidden = false;
    pill.dataset.state = state === 'live' ? state : 'waiting';
    [pill.textContent, pill.title] = states[state];
  }
}

function address(): string {
  const path = document.documentElement.dataset.socket ?? '/ws/live/';
  return new URL(path, location.href).href.replace(/^http/, 'ws');
}

/** Sends the list of topics, and what the page follows from where it is now. */
export function subscribe(): void {
  if (socket?.readyState !== WebSocket.OPEN) return;
  const follow = following?.from() ?? undefined;
  socket.send(JSON.stringify({ watch: [...watches.keys()], follow }));
}

/** A run whose changes the server sends along, to `take`. */
type Following = {
  from(): { session: string; run: string; since: string } | null;
  take(delta: unknown, run: string): void;
};
let following: Following | undefined;

/** Has the changes of a run sent along with the versions, until the returned function is called. */
export function followRun(wanted: Following): () => void {
  following = wanted;
  subscribe();
  return () => {
    following = undefined;
    subscribe();
  };
}

/** Asks for all versions again: makes up for lost hints, and an answer says that the line still holds,
    which a socket whose other end is gone does not notice by itself. */
function feelPulse(): void {
  if (document.hidden || !watches.size || socket?.readyState !== WebSocket.OPEN) return;
  subscribe();
  silence ??= setTimeout(() => lost(), answerWithin);
}

function quiet(): void {
  clearTimeout(silence);
  silence = undefined;
}

/** An answer, not the opening, says that the line holds: a page too many is let in and turned away. */
function heard(): void {
  quiet();
  attempt = 0;
  if (live) return;
  clearInterval(poll);
  poll = undefined;
  live = true;
  show('live');
}

function connect(): void {
  clearTimeout(again);
  if (ended) return;
  const mine = (socket = new WebSocket(address()));
  mine.onopen = () => {
    subscribe();
    if (!watches.size) heard(); // nothing to be answered
    pulse ??= setInterval(feelPulse, pulseEvery);
  };
  mine.onmessage = (message) => {
    if (mine !== socket) return;
    heard();
    const { topic, version, run, delta } = JSON.parse(message.data as string) as {
      topic: string;
      version: number | null;
      run?: string;
      delta?: unknown;
    };
    if (delta !== undefined) following?.take(delta, run ?? '');
    else for (const watch of watches.get(topic) ?? []) watch(version);
  };
  mine.onclose = ({ code }) => {
    if (mine !== socket) return;
    if (code === signedOut) return endAccess();
    if (code === tooMany) attempt = patient;
    lost(code === tooMany ? 'crowded' : 'waiting');
  };
}

/** The server says that this reader may see the page no more: nothing is asked for again. */
export function endAccess(): void {
  if (ended) return;
  ended = true;
  quiet();
  for (const clock of [poll, pulse]) clearInterval(clock);
  clearTimeout(again);
  const old = socket;
  socket = undefined;
  watches.clear();
  old?.close();
  show('ended');
  removeContent();
}

function lost(state: State = 'waiting'): void {
  quiet();
  live = false;
  const old = socket;
  socket = undefined;
  old?.close();
  show(state);
  poll ??= setInterval(lookAround, pollEvery);
  // Jitter: a hundred pages must not come back in the same millisecond.
  const wait = Math.min(pollEvery, 500 * 2 ** attempt++) * (0.5 + Math.random() / 2);
  clearTimeout(again);
  again = setTimeout(connect, wait);
}

function lookAround(): void {
  if (document.hidden) return;
  for (const set of watches.values()) for (const watch of set) watch(null);
}

/* Back from another tab, from sleep, or on the net again: do not wait for the next turn. */
function wake(): void {
  if (document.hidden || !watches.size) return;
  if (socket?.readyState === WebSocket.OPEN) feelPulse();
  else if (socket?.readyState !== WebSocket.CONNECTING) connect();
}
document.addEventListener('visibilitychange', wake);
addEventListener('online', wake);

/** Calls back when the topic ("session:<id>", "job:<id>") moves on, until the returned function is called. */
export function watchTopic(topic: string, watch: Watch): () => void {
  const set = watches.get(topic) ?? new Set();
  watches.set(topic, set.add(watch));
  if (ended) return () => {};
  if (socket) subscribe();
  else if (!again) connect();
  return () => {
    set.delete(watch);
    if (!set.size) watches.delete(topic);
    subscribe();
  };
}
