/* A run as the page holds it: fetched whole once, then brought up to date by what is new. */
import { ask, withQuery } from '../../web/request';
import { compose, type Composition } from './composition';
import { isDelta, merge, type Answer } from './delta';
import { decode, type ManifestJson } from './manifest';
import type { Manifest } from './manifest';

export type Holding = { manifest: Manifest; composition: Composition };
/** Places of the entries that came in; null where the whole was fetched again. */
export type News = Holding & { inserted: number[] | null };

const whole = (json: ManifestJson): Holding => {
  const manifest = decode(json);
  return { manifest, composition: compose(manifest.entries, manifest.last) };
};

export async function fetchRun(
  address: string,
  run: string,
  signal: AbortSignal,
): Promise<Holding> {
  return whole(await ask<ManifestJson>(run ? withQuery(address, { run }) : address, { signal }));
}

export async function fetchNews(
  address: string,
  run: string,
  held: Holding,
  signal: AbortSignal,
): Promise<News> {
  const since = held.manifest.next;
  const query: Record<string, string | number> = since === undefined ? { run } : { run, since };
  const answer = await ask<Answer>(withQuery(address, query), { signal });
  if (signal.aborted) throw new DOMException('another request took its place', 'AbortError');
  if (!isDelta(answer)) return { ...whole(answer), inserted: null };
  const merged = merge(held.manifest, held.composition, answer);
  if (!merged) return { ...(await fetchRun(address, run, signal)), inserted: null };
  // A composition of its own identity, so that what is drawn from it is drawn anew.
  return {
    manifest: merged.manifest,
    composition: { ...held.composition },
    inserted: merged.inserted,
  };
}
