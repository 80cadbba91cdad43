/* Follows a session that still grows. */
import { problemFrom } from '../../web/request';
import { followRun, subscribe, watchTopic } from '../../web/socket';
import type { DeltaJson } from '../manifest/delta';
import type { Replay } from './replay.svelte';

const pauseMs = 250; // between two looks, however fast hints come
const retryMs = 3000;
const pushMs = 1000; // so long a change may take that is sent along

/** Brings the page up to date when the session moves on: by what the server sends along, or else by asking
    for it, one look at a time and again until it worked. */
export function followSession(replay: Replay, id: string): () => void {
  let wanted = false;
  let running = false;
  let pushes = false; // has the server sent a change along?
  let timer: ReturnType<typeof setTimeout> | undefined;
  const isKnown = (version: number | null) =>
    version !== null && version <= (replay.manifest?.session.version ?? -1);
  const later = (ms: number) => {
    timer ??= setTimeout(() => void look(), ms); // what comes meanwhile must not put it off
  };
  const settled = () => {
    clearTimeout(timer);
    timer = undefined;
  };
  const look = async () => {
    if (running) {
      wanted = true;
      return;
    }
    settled();
    running = true;
    wanted = false;
    const problem = await replay.renew().then(() => null, problemFrom);
    const failed = problem !== null;
    running = false;
    if (problem?.status === 410) return location.reload(); // it was erased: the page says so
    replay.behind = failed;
    if (failed) later(retryMs);
    else if (wanted) later(pauseMs);
    if (!failed) subscribe(); // from here on
  };
  const stopFollowing = followRun({
    from: () =>
      replay.manifest?.next ? { session: id, run: replay.run, since: replay.manifest.next } : null,
    take: (delta, run) => {
      pushes = true;
      if (delta === null) return void look(); // too long to send along
      if (running || run !== replay.run || !replay.take(delta as DeltaJson)) {
        if (running) wanted = true;
        else later(pauseMs); // it does not go on from here: ask, and follow from there
        return;
      }
      settled();
      replay.behind = false;
    },
  });
  const stopWatching = watchTopic(`session:${id}`, (version) => {
    if (isKnown(version)) return;
    if (pushes && version !== null) later(pushMs);
    else void look();
  });
  return () => {
    settled();
    stopFollowing();
    stopWatching();
  };
}
