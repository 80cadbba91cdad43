/* One step's numbers, so that what is on screen adds up. */
import type { Composition } from './composition';
import type { Manifest } from './manifest';
import { Basis } from './manifest';

type Ledger = {
  step: number;
  next: boolean; // no call yet: only what we count ourselves
  visible: number; // our count of the rows
  hidden: number; // prompt tokens that the log does not show
  recited: number; // recited at the end: no row holds it
  prompt: number | null; // what the provider reported
  size: number; // the headline: reported if there is a report
  basis: number; // of the headline
  unexplained: number; // prompt - visible - hidden - recited
  change: number | null; // of the headline against the step before
  read: number | null;
  write: number | null;
  uncached: number | null;
  output: number | null;
  cost: number | null; // of all requests behind the response
  beside: number; // prompt tokens of the requests other than the one that is shown
  gap: number; // prompt - (read + write + uncached): what does not reconcile
  at: number | null;
  waited: number | null; // since the step before
  model: string;
  unreported: boolean; // the agent had two contexts, and did not report which it sent
};

/** Tokens of what is recited at a step; of the next one as far as it is known. */
const recitedAt = ({ session, run, steps }: Manifest, step: number): number =>
  (step > session.steps ? run.recited_next : steps.recited?.[step - 1]) ?? 0;

const countedAt = (manifest: Manifest, composition: Composition, step: number): number =>
  composition.total[step] + manifest.session.hidden + recitedAt(manifest, step);

/** The headline of a step: reported if there is a report, else counted. The next one is the last report and what was
    added since; where the context shrank, the rows that our count had too many of may be gone. */
export function sizeAt(manifest: Manifest, composition: Composition, step: number): number {
  const { steps, session } = manifest;
  const [before, prompt] = [steps.prompt[step - 2] ?? null, steps.prompt[step - 1] ?? null];
  const counted = countedAt(manifest, composition, step);
  if (prompt !== null || before === null || step <= session.steps) return prompt ?? counted;
  const last = countedAt(manifest, composition, step - 1);
  return Math.max(counted + before - last, counted < last ? counted : 0);
}

/** Against the step before: reported with reported, or else counted with counted. */
function changeAt(manifest: Manifest, composition: Composition, step: number): number {
  const [then, now] = [
    manifest.steps.prompt[step - 2] ?? null,
    manifest.steps.prompt[step - 1] ?? null,
  ];
  if (then !== null && now !== null) return now - then;
  return countedAt(manifest, composition, step) - countedAt(manifest, composition, step - 1);
}

export function ledgerAt(manifest: Manifest, composition: Composition, step: number): Ledger {
  const { steps, session } = manifest;
  const i = step - 1;
  const value = (column: (number | null)[]): number | null => column[i] ?? null;
  const prompt = value(steps.prompt);
  const [read, write, uncached] = [value(steps.read), value(steps.write), value(steps.uncached)];
  const visible = composition.total[step];
  const recited = recitedAt(manifest, step);
  const next = step > session.steps;
  const size = sizeAt(manifest, composition, step);
  // A step without a report, and the next one, are estimates whatever the rest is.
  const basis =
    prompt === null
      ? manifest.run.origin === 'simulated'
        ? Basis.simulated
        : session.basis === 'exact' && !session.hidden
          ? Basis.measured
          : Basis.estimated
      : (value(steps.basis) ?? Basis.measured);
  return {
    step,
    next,
    visible,
    hidden: session.hidden,
    recited,
    prompt,
    basis,
    size,
    unexplained: size - visible - session.hidden - recited,
    change: step > 1 ? changeAt(manifest, composition, step) : null,
    read,
    write,
    uncached,
    output: value(steps.output),
    cost: value(steps.cost),
    beside: steps.beside?.[i] ?? 0,
    gap: prompt === null || read === null ? 0 : prompt - read - (write ?? 0) - (uncached ?? 0),
    at: value(steps.at),
    waited:
      i > 0 && value(steps.at) !== null && steps.at[i - 1] !== null
        ? value(steps.at)! - steps.at[i - 1]!
        : null,
    model: manifest.models[value(steps.model) ?? 0] ?? session.model,
    unreported:
      Boolean(session.handed_out) &&
      manifest.run.origin !== 'simulated' &&
      !next &&
      !steps.managed?.[i],
  };
}

/** From how many tokens on our count of the rows differs from the prompt by more than counting may be off. */
const isClear = (difference: number, prompt: number): boolean =>
  Math.abs(difference) > Math.max(4000, prompt * 0.08);

/** The most by which the rows of a step exceed what the provider reported, in tokens; 0 where none clearly do. */
export function mostUncertain(manifest: Manifest, composition: Composition): number {
  let most = 0;
  manifest.steps.prompt.forEach((prompt, i) => {
    if (prompt === null) return;
    const excess = countedAt(manifest, composition, i + 1) - prompt;
    if (isClear(excess, prompt)) most = Math.max(most, excess);
  });
  return most;
}

/** `peak` has one source, or it would fall when a report takes the place of a count: what the provider reported,
    where it reported anything of this run, as the list of sessions has it; else our count. */
export type Totals = {
  peak: number;
  peakStep: number;
  peakCounted: number;
  cost: number | null;
  readShare: number | null;
  rewrite: number | null;
  billed: number | null;
  compactions: number;
};

/** The whole run: the context at its largest (never the sum of steps), cost, cache. */
export function totals(manifest: Manifest, composition: Composition): Totals {
  const { steps, session } = manifest;
  const sum = (column: (number | null)[]) =>
    column.reduce<number>((all, one) => all + (one ?? 0), 0);
  const known = steps.read.some((read) => read !== null);
  // What was sent instead of the recorded contexts is set aside there: the few that are left say nothing of its peak.
  const isReported =
    steps.prompt.some((prompt) => prompt !== null) &&
    !(manifest.run.origin === 'recorded' && steps.managed?.some(Boolean));
  let [peak, peakStep, peakCounted] = [0, 0, 0];
  for (let step = 1; step <= session.steps; step++) {
    const counted = countedAt(manifest, composition, step);
    const here = isReported ? (steps.prompt[step - 1] ?? 0) : counted;
    if (here > peak) [peak, peakStep] = [here, step];
    peakCounted = Math.max(peakCounted, counted);
  }
  const write = sum(steps.write);
  const billed = sum(steps.read) + write + sum(steps.uncached) + sum(steps.beside ?? []);
  return {
    peak,
    peakStep,
    peakCounted,
    cost: steps.cost.some((cost) => cost !== null) ? sum(steps.cost) : null,
    billed: known ? billed : null,
    // Of all requests, as the list of sessions has it.
    readShare:
      known && billed > 0 ? (sum(steps.read) + sum(steps.beside_read ?? [])) / billed : null,
    // Cache writes over the largest context: 1.0 means every token was written once.
    rewrite: known && peak > 0 && write > 0 ? write / peak : null,
    compactions: manifest.events.filter((event) => event.kind === 'compaction').length,
  };
}
