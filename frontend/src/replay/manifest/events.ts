/* Events of a session: what each says, and the way from one to the next. */
import { markOf } from '../../web/marks';
import type { SessionEvent } from './manifest';

/** "Cache break at S5: TTL expired", with what the mark means where the event says no more. */
export const saidOf = ({ kind, step, label }: SessionEvent): string => {
  const { name, means } = markOf(kind);
  return `${name} at step ${step}: ${label || means}`;
};

export function eventBefore(events: readonly SessionEvent[], step: number): number | null {
  return events.findLast((event) => event.step < step)?.step ?? null;
}

export function eventAfter(events: readonly SessionEvent[], step: number): number | null {
  return events.find((event) => event.step > step)?.step ?? null;
}
