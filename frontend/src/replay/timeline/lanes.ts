/* Sub-agents as bars: from the step that started one to the last step before it ended, under its name. */
import type { Child } from '../manifest/manifest';
import type { Axis } from '../state/axis';

/** In px. `left` and `room` are those of the name, which a short bar is too narrow for. */
export type Bar = {
  child: Child;
  x: number;
  width: number;
  left: number;
  room: number;
  lane: number;
};

const narrowest = 6; // px: a bar of one step is seen
const named = 132; // px: enough of a name to tell sub-agents apart, and to press
const gap = 2; // px

/** The last step of the parent that began before the sub-agent ended; its first where no time says. */
export function lastStepOf(child: Child, at: readonly (number | null)[]): number {
  let step = child.step || 1;
  if (child.ended === null) return step;
  for (let next = step + 1; next <= at.length; next++) {
    const time = at[next - 1];
    if (time !== null && time > child.ended) break;
    if (time !== null) step = next;
  }
  return step;
}

/** Bars that overlap stand in lanes below each other; those that find no lane are left over. */
export function barsOf(
  children: readonly Child[],
  at: readonly (number | null)[],
  axis: Axis,
  width: number,
  lanes: number,
): { bars: Bar[]; rest: Child[] } {
  const ends = new Array<number>(lanes).fill(-Infinity);
  const bars: Bar[] = [];
  const rest: Child[] = [];
  for (const child of [...children].sort((a, b) => a.step - b.step)) {
    const start = axis.middle(child.step || 1) * width;
    const end = axis.middle(lastStepOf(child, at)) * width;
    const wide = Math.max(narrowest, end - start);
    const x = Math.max(0, Math.min(start, width - wide));
    const room = Math.max(wide, Math.min(named, width));
    const left = Math.max(0, Math.min(x, width - room));
    const lane = ends.findIndex((until) => until + gap <= left);
    if (lane < 0) rest.push(child);
    else {
      ends[lane] = left + room;
      bars.push({ child, x, width: wide, left, room, lane });
    }
  }
  return { bars, rest };
}
