/* Marks of events on the timeline: one where several would stand on each other. */
import { shapeOf } from '../manifest/events';
import type { Axis } from '../state/axis';
import type { EventKind, SessionEvent } from '../manifest/manifest';

// The shape of a cluster: what changed the context before what merely happened in it.
const rank: EventKind[] = [
  'compaction',
  'offload',
  'window',
  'clear',
  'undo',
  'pin',
  'setup',
  'rewind',
  'entry',
  'break',
  'model',
  'retry',
  'error',
  'subagent',
];
const weight = (kind: EventKind) => rank.indexOf(kind) + 1 || rank.length + 1;

export type Mark = { events: SessionEvent[]; kind: EventKind; x: number; from: number; to: number };

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
      if (weight(event.kind) < weight(before.kind)) before.kind = event.kind;
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
  const [first] = mark.events;
  if (mark.events.length === 1)
    return `${shapeOf(first.kind)[1]} at S${first.step}${first.label && `: ${first.label}`}`;
  const counts = new Map<string, number>();
  for (const event of mark.events)
    counts.set(shapeOf(event.kind)[1], (counts.get(shapeOf(event.kind)[1]) ?? 0) + 1);
  const kinds = [...counts].map(([name, count]) => `${count} × ${name.toLowerCase()}`);
  return `${mark.events.length} events, S${mark.from} to S${mark.to}: ${kinds.join(', ')}`;
}
