/* A run as the page holds it: fetched whole once, then brought up to date by what is new. */
import { ask, withQuery } from '../../web/request';
import { compose, type Composition } from './composition';
import { isDelta, merge, type DeltaJson } from './delta';
import { decode, everOpen, type Manifest } from './manifest';
import { unpacked, type PackedJson } from './packing';

export type Holding = { manifest: Manifest; composition: Composition };
/** Places of the entries that came in; null where the whole was fetched again. */
type News = Holding & { inserted: number[] | null };

/** A manifest as the server packs it. */
export const opened = (json: PackedJson): Manifest => decode(unpacked(json));

const whole = (json: PackedJson): Holding => {
  const manifest = opened(json);
  return { manifest, composition: compose(manifest.entries, manifest.last) };
};

export async function fetchRun(
  address: string,
  run: string,
  signal: AbortSignal,
): Promise<Holding> {
  return whole(await ask<PackedJson>(withQuery(address, { run, packed: 'true' }), { signal }));
}

export async function fetchNews(
  address: string,
  run: string,
  held: Holding,
  signal: AbortSignal,
): Promise<News> {
  const since = held.manifest.next;
  const query = { run, since: since ?? '', packed: 'true' };
  const answer = await ask<PackedJson | DeltaJson>(withQuery(address, query), { signal });
  if (signal.aborted) throw new DOMException('another request took its place', 'AbortError');
  if (!isDelta(answer)) return { ...whole(answer), inserted: null };
  const merged = merge(held.manifest, held.composition, answer);
  if (!merged) return { ...(await fetchRun(address, run, signal)), inserted: null };
  // A composition of its own identity, so that what depends on it is redrawn.
  return {
    manifest: merged.manifest,
    composition: { ...held.composition },
    inserted: merged.inserted,
  };
}

/** The recorded run of a session, out of its managed run, where the log took nothing away: all
    that ever came, and prompts only of calls that did not see a context of ours. */
export function recordedOf(manifest: Manifest): Holding {
  const { entries, steps, session, run } = manifest;
  const to = entries.to.map((_, i) => (entries.edit[i] ? entries.from[i] : everOpen));
  const prompt = steps.prompt.map((tokens, i) => (steps.managed?.[i] ? null : tokens));
  const recorded: Manifest = {
    ...manifest,
    run: { ...run, id: 'recorded', origin: 'recorded', recited_next: 0 },
    entries: { ...entries, to },
    steps: { ...steps, prompt, recited: [] },
  };
  return { manifest: recorded, composition: compose(recorded.entries, session.steps + 1) };
}
