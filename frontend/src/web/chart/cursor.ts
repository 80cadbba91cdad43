/* Where the cursor goes from a key. */

/** The next point, or null where the key is not the chart's; `now` is -1 before the first. */
export function moved(key: string, now: number, count: number, shift = false): number | null {
  const page = Math.max(1, Math.round(count / 10));
  const by: Record<string, number> = {
    ArrowRight: shift ? page : 1,
    ArrowLeft: shift ? -page : -1,
    ArrowUp: 1,
    ArrowDown: -1,
    PageUp: page,
    PageDown: -page,
  };
  if (!count) return null;
  if (key === 'Home') return 0;
  if (key === 'End') return count - 1;
  if (!(key in by)) return null;
  if (now < 0) return by[key] > 0 ? 0 : count - 1;
  return Math.max(0, Math.min(count - 1, now + by[key]));
}
