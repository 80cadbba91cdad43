/* One socket for the page. It carries only "this topic is at version n"; whoever cares fetches the rest. */

export type Watch = (version: number | null) => void; // null: the socket is down, look for yourself
type State = 'live' | 'waiting';

const pollEvery = 10_000;
const watches = new Map<string, Set<Watch>>();
let socket: WebSocket | undefined;
let attempt = 0;
let poll: ReturnType<typeof setInterval> | undefined;

function show(state: State): void {
  for (const pill of document.querySelectorAll<HTMLElement>('[data-live-pill]')) {
    pill.hidden = false;
    pill.dataset.state = state;
    pill.textContent = state === 'live' ? 'live' : 'reconnecting';
    pill.title = state === 'live' ? 'Changes arrive as they happen' : 'No connection: looking every 10 s';
  }
}

function address(): string {
  const path = document.documentElement.dataset.socket ?? '/ws/live/';
  return new URL(path, location.href).href.replace(/^http/, 'ws');
}

const subscribe = () => {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ watch: [...watches.keys()] }));
};

function connect(): void {
  socket = new WebSocket(address());
  socket.onopen = () => {
    attempt = 0;
    clearInterval(poll);
    poll = undefined;
    show('live');
    subscribe();
  };
  socket.onmessage = (message) => {
    const { topic, version } = JSON.parse(message.data as string) as { topic: string; version: number };
    for (const watch of watches.get(topic) ?? []) watch(version);
  };
  socket.onclose = () => {
    show('waiting');
    poll ??= setInterval(lookAround, pollEvery);
    // Jitter: a hundred pages must not come back in the same millisecond.
    const wait = Math.min(30_000, 500 * 2 ** attempt++) * (0.5 + Math.random() / 2);
    setTimeout(connect, wait);
  };
}

function lookAround(): void {
  if (document.hidden) return;
  for (const set of watches.values()) for (const watch of set) watch(null);
}

/** Calls back when the topic ("session:<id>", "job:<id>") moves on, until the returned function is called. */
export function watchTopic(topic: string, watch: Watch): () => void {
  const set = watches.get(topic) ?? new Set();
  watches.set(topic, set.add(watch));
  if (socket) subscribe();
  else connect();
  return () => {
    set.delete(watch);
    if (!set.size) watches.delete(topic);
    subscribe();
  };
}
