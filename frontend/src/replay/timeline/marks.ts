/* Marks of events on the timeline: one where several would stand on each other. */
import { counted, rankOf } from '../../web/marks';
import { saidOf } from '../manifest/events';
import type { SessionEvent } from '../manifest/manifest';
import type { Axis } from '../state/axis';

export type Mark = { events: SessionEvent[]; kind: string; x: number; from: number; to: number };

/** Marks at least `target` pixels apart. */
export function cluster(
  events: readonly SessionEvent[],
  axis: Axis,
  width: number,
  target = 24,
): Mark[] {
  const marks: Mark[] = [];
  for (const event of events) {
    const x = Math.min(
      Math.max(axis.middle(event.step) * width, target / 2),
      Math.max(target / 2, width - target / 2),
    );
    const before = marks.at(-1);
    if (before && x - before.x < target) {
      before.events.push(event);
      before.to = event.step;
      if (rankOf(event.kind) < rankOf(before.kind)) before.kind = event.kind;
    } else marks.push({ events: [event], kind: event.kind, x, from: event.step, to: event.step });
  }
  return marks;
}

/** The step that a press on the mark goes to: its first, then the next on each further press. */
export function nextIn(mark: Mark, step: number): SessionEvent {
  const at = mark.events.findIndex((event) => event.step === step);
  return mark.events[
    at < 0
      ? 0
      : (mark.events.findLastIndex((event) => event.step === step) + 1) % mark.events.length
  ];
}

export function nameOfMark(mark: Mark): string {
  if (mark.events.length === 1) return saidOf(mark.events[0]);
  const counts = new Map<string, number>();
  for (const { kind } of mark.events) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const kinds = [...counts].map(([kind, count]) => counted(kind, count));
  return `${mark.events.length} events, S${mark.from} to S${mark.to}: ${kinds.join(', ')}`;
}
