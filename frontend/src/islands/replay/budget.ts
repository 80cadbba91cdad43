/* How full the next call's context is; the server's compaction/budget.py says the same to the agent. */

/** In tokens of the whole prompt. `ladder`: from which share of the room how many milliseconds of waiting are advised. */
export type Limits = { window: number; room: number; warn: number; trigger: number | null; target: number | null; ladder: [share: number, ms: number][] };
export type Level = 'ok' | 'warn' | 'trigger' | 'over';
/** `share` is of the room: of the window less what is kept free for the output. */
export type Budget = Limits & { used: number; share: number; state: Level; delay_ms: number };

export function standing(limits: Limits, used: number): Budget {
  const share = used / limits.room;
  const due = limits.trigger !== null && used >= limits.trigger;
  const state: Level = used > limits.room ? 'over' : due ? 'trigger' : used >= limits.warn ? 'warn' : 'ok';
  return { ...limits, used, share, state, delay_ms: limits.ladder.find(([least]) => share >= least)?.[1] ?? 0 };
}
