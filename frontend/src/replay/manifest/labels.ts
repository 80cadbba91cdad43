/* Labels of events and cards of causes, which packed manifests of many events leave out. */
import { ask, withQuery } from '../../web/request';
import type { Manifest } from './manifest';

type Labels = Pick<Manifest, 'events' | 'causes'>;

export const fetchLabels = (address: string, run: string): Promise<Labels> =>
  ask<Labels>(withQuery(address, { run }));

/** The manifest with what it left out; what it has itself stays, because it may be newer. */
export function labeled(manifest: Manifest, found: Labels): Manifest {
  const from = manifest.labeled_from ?? 1;
  const whole = <Thing extends { step: number }>(left: Thing[], own: Thing[]): Thing[] => [
    ...left.filter(({ step }) => step < from),
    ...own.filter(({ step }) => step >= from),
  ];
  return {
    ...manifest,
    events: whole(found.events, manifest.events),
    causes: whole(found.causes, manifest.causes),
    labeled_from: 1,
  };
}
