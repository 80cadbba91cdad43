/* How full the next call's context is; the server's compaction/budget/budget.py says the same to the agent. */

/** In tokens of the whole prompt. `ladder`: from which share of the room how many milliseconds of waiting are
    advised. */
export type Limits = {
  window: number;
  room: number;
  warn: number;
  trigger: number | null;
  target: number | null;
  ladder: [share: number, ms: number][];
};
type Level = 'ok' | 'warn' | 'trigger' | 'over';
/** `share` is of the room: of the window less what is kept free for the output. `used` is `counted`, what we
    count, corrected by reported usage. */
export type Budget = Limits & {
  used: number;
  counted: number;
  share: number;
  state: Level;
  delay_ms: number;
};

export type Line = { name: string; tokens: number; title: string };

/** Where the policy aims, warns and compacts, and what there is: in the order in which a growing context gets there. */
export function linesOf({ target, warn, trigger, room, window }: Limits): Line[] {
  const lines: [string, number | null, string][] = [
    ['target', target, 'What the policy aims at when it compacts'],
    ['warn', warn, 'From here on the agent is warned'],
    ['trigger', trigger, 'From here on the policy compacts'],
    ['room', room < window ? room : null, 'The window less what is kept free for the output'],
    ['window', window, ''],
  ];
  const known = lines.flatMap(([name, tokens, title]) => (tokens ? [{ name, tokens, title }] : []));
  return known.sort((a, b) => a.tokens - b.tokens);
}

export function standing(limits: Limits, used: number, counted = used): Budget {
  const share = used / limits.room;
  const due = limits.trigger !== null && used >= limits.trigger;
  const state: Level =
    used > limits.room ? 'over' : due ? 'trigger' : used >= limits.warn ? 'warn' : 'ok';
  return {
    ...limits,
    used,
    counted,
    share,
    state,
    delay_ms: limits.ladder.find(([least]) => share >= least)?.[1] ?? 0,
  };
}
