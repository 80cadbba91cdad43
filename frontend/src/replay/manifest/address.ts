/* The address bar always says what is on screen: /sessions/<id>/steps/<n>/?run=…&m=…&view=…&x=…
   In a file it is behind "#", the only part that the page of a file may change. */
import type { Manifest } from './manifest';
import { Flag } from './manifest';
import { stands } from './composition';

export const views = ['table', 'transcript', 'treemap', 'raw'] as const;
export type View = (typeof views)[number];
export type AxisName = 'steps' | 'time';
type Place = {
  step: number | null;
  run: string;
  message: string;
  view?: View;
  axis?: AxisName;
};

export function placeIn(address: string): Required<Place> {
  const url = new URL(address.replace('#steps/', '/steps/'));
  const step = /\/steps\/(\d+)\/?$/.exec(url.pathname)?.[1];
  return {
    step: step ? Number(step) : null,
    run: url.searchParams.get('run') ?? '',
    message: url.searchParams.get('m') ?? '',
    view: views.find((view) => view === url.searchParams.get('view')) ?? 'table',
    axis: url.searchParams.get('x') === 'time' ? 'time' : 'steps',
  };
}

/** Without a step: wherever the session is when it is opened. `usual` is the run that needs no name. */
export function addressOf(replayUrl: string, place: Place, usual = 'recorded'): string {
  const query = new URLSearchParams();
  if (place.run && place.run !== usual) query.set('run', place.run);
  if (place.message) query.set('m', place.message);
  if (place.view && place.view !== 'table') query.set('view', place.view);
  if (place.axis === 'time') query.set('x', 'time');
  const text = query.toString();
  return `${replayUrl}${place.step === null ? '' : `steps/${place.step}/`}${text ? `?${text}` : ''}`;
}

/** A name for an entry that survives new entries: "412.1", or "r14.0" for the first block that revision 14 put in. */
export function nameOfEntry(manifest: Manifest, i: number): string {
  const { entries } = manifest;
  if (entries.message[i] >= 0 && !(entries.flags[i] & Flag.replacement && entries.kind[i] === 4)) {
    return entries.index[i] ? `${entries.message[i]}.${entries.index[i]}` : `${entries.message[i]}`;
  }
  let nth = 0;
  for (let j = 0; j < i; j++) if (entries.edit[j] === entries.edit[i]) nth++;
  return `r${entries.edit[i]}.${nth}`;
}

/** The entry of that name: the version that stands at the step, or else the last one. */
export function findEntry(manifest: Manifest, name: string, step: number): number {
  const { entries } = manifest;
  const made = /^r(\d+)\.(\d+)$/.exec(name);
  if (made) {
    let nth = Number(made[2]);
    for (let i = 0; i < entries.count; i++)
      if (entries.edit[i] === Number(made[1]) && nth-- === 0) return i;
    return -1;
  }
  const match = /^(\d+)(?:\.(\d+))?$/.exec(name);
  if (!match) return -1;
  const [message, index] = [Number(match[1]), match[2] === undefined ? null : Number(match[2])];
  let found = -1;
  for (let i = 0; i < entries.count; i++) {
    if (
      entries.message[i] !== message ||
      (index === null
        ? found >= 0 && entries.index[i] !== entries.index[found]
        : entries.index[i] !== index)
    )
      continue;
    if (stands(entries, i, step)) return i;
    found = i;
  }
  return found;
}
