/* Marks of events on the timeline: one where several would stand on each other. */
import { counted, markOf, rankOf } from '../../web/marks';
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

/** What a mark shows. One kind: its symbol and how often. Several: two as they are; more as a number, which is no
    symbol of one of them, beside the symbol of a cache break, for that costs money. */
export function shownOf(mark: Mark): { symbols: string; count: string; mixed: boolean } {
  const kinds = [...new Set(mark.events.map((event) => event.kind))];
  const size = mark.events.length;
  if (kinds.length === 1)
    return { symbols: markOf(mark.kind).symbol, count: size > 1 ? String(size) : '', mixed: false };
  if (size === 2)
    return { symbols: kinds.map((kind) => markOf(kind).symbol).join(''), count: '', mixed: true };
  const cut = kinds.includes('break') ? markOf('break').symbol : '';
  return { symbols: cut, count: String(size), mixed: true };
}

/** What a press on the mark goes to: its most important event, then the next on each further press. */
export function nextIn(mark: Mark, step: number): SessionEvent {
  const at = mark.events.findIndex((event) => event.step === step);
  return mark.events[
    at < 0
      ? mark.events.findIndex((event) => event.kind === mark.kind)
      : (mark.events.findLastIndex((event) => event.step === step) + 1) % mark.events.length
  ];
}

export function nameOfMark(mark: Mark): string {
  if (mark.events.length === 1) return saidOf(mark.events[0]);
  const counts = new Map<string, number>();
  for (const { kind } of mark.events) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const kinds = [...counts].map(([kind, count]) => counted(kind, count));
  return `${mark.events.length} events, steps ${mark.from} to ${mark.to}: ${kinds.join(', ')}`;
}
