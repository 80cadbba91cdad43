/* The lines of an exact simulation, as sessions/actions/lab/draft_figures.py sends them. */
import type { Sums } from './simulation/body';
import { open } from '../web/request';

export type Session = { id: string; title: string; steps: number };
/** Micro-dollars, including reading back, and recall in context: as recorded, under the active version, under the draft. */
export type Row = {
  id: string;
  cost: [number | null, number | null, number | null];
  recall: [number | null, number | null, number | null];
};
export type Verdict = {
  tone: 'good' | 'bad' | 'neutral';
  sentence: string;
  detail: string;
  propose: boolean;
};
export type Figures = {
  kind: 'figures';
  through: number;
  total: number;
  draft: Sums;
  active: Sums;
  recorded: Sums;
  verdict: Verdict;
  rows: Row[];
};
export type Worst = { id: string; step: number; why: string };
export type Done = {
  kind: 'done';
  ms: number;
  cpu_ms: number;
  steps: number;
  worst: Worst[];
  problems: string[];
};
export type Effect = {
  kind: 'effect';
  path: string;
  charged_microusd: number | null;
  in_context: number | null;
};
export type Point = {
  kind: 'point';
  name: string;
  charged_microusd: number | null;
  in_context: number | null;
};
export type Line =
  | { kind: 'sessions'; sessions: Session[]; left_out: number; active: string }
  | Figures
  | Done
  | Effect
  | Point
  | { kind: 'oracle'; cost_microusd: number | null }
  | { kind: 'problem'; title: string; detail: string };

/** Splits pieces of a stream into lines; what is left of the last piece comes with the next. */
export class Lines {
  #rest = '';

  take(piece: string): Line[] {
    const lines = (this.#rest + piece).split('\n');
    this.#rest = lines.pop()!;
    return lines.filter((line) => line.trim()).map((line) => JSON.parse(line) as Line);
  }
}

/** Asks for a simulation, and calls back for each line. */
export async function simulate(
  address: string,
  body: unknown,
  signal: AbortSignal,
  on: (line: Line) => void,
): Promise<void> {
  const answer = await open(address, body, signal);
  // Decoded here: of a TransformStream, Firefox reports the end by `signal` as an unhandled error.
  const reader = answer.body!.getReader();
  const decoder = new TextDecoder();
  const lines = new Lines();
  for (;;) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      if (signal.aborted) return { done: true as const, value: undefined };
      throw error;
    });
    if (done) return;
    for (const line of lines.take(decoder.decode(value, { stream: true }))) {
      if (signal.aborted) return;
      on(line);
    }
  }
}
