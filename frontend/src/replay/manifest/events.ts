/* Events of a session: a shape and a name for each kind, and the way from one to the next. */
import type { EventKind, SessionEvent } from './manifest';

const shapes: Record<EventKind, [glyph: string, name: string]> = {
  error: ['▲', 'Error'],
  break: ['✕', 'Cache break'],
  compaction: ['◆', 'Compaction'],
  clear: ['✂', 'Cleared'],
  window: ['✂', 'Window'],
  offload: ['▽', 'Offload'],
  entry: ['◁', 'Shortened at entry'],
  rewind: ['↶', 'Rewind'],
  undo: ['↺', 'Undo'],
  pin: ['⚲', 'Pin'],
  setup: ['◇', 'New set-up'],
  model: ['⇄', 'Model switch'],
  retry: ['⟳', 'Retry'],
  subagent: ['⤷', 'Sub-agent'],
};
/** Shape and name of an event; a plain one for kinds that came after this page was made. */
export const shapeOf = (kind: string): [glyph: string, name: string] =>
  shapes[kind as EventKind] ?? ['◇', kind.charAt(0).toUpperCase() + kind.slice(1)];

export function eventBefore(events: readonly SessionEvent[], step: number): number | null {
  return events.findLast((event) => event.step < step)?.step ?? null;
}

export function eventAfter(events: readonly SessionEvent[], step: number): number | null {
  return events.find((event) => event.step > step)?.step ?? null;
}
