/* What prompts cost with a cache: what stands unchanged is read, what follows an edit is written anew. */
import type { Rates, Sizes } from './sizes';

/** A prompt in tokens; `unchanged` of the one before still stand, null where all of it does. */
export type Prompt = { total: number; unchanged: number | null };

const OPENAI_STEP = 128;

/** The rates of a whole call: long prompts may be dearer. */
function ratesAt(price: Rates, prompt: number): Rates {
  let rates = price;
  for (const [over, dearer] of price.dearer ?? []) if (prompt > over) rates = dearer;
  return rates;
}

/** Tokens read, and micro-dollars for all calls, output included; null where nobody knows the rules or the price. */
export function cost(sizes: Sizes, prompts: readonly Prompt[]): { read: number | null; cost: number | null } {
  const { rules, price, minimum } = sizes;
  if (rules === 'unknown') return { read: null, cost: null };
  let nanos = 0;
  let allRead = 0;
  // Each model has a cache of its own: tokens that it holds, and when it was last used (ms).
  const held: number[] = [];
  const used: (number | null)[] = [];
  prompts.forEach(({ total, unchanged }, i) => {
    const model = sizes.models[i];
    const at = sizes.at[i];
    const last = used[model] ?? null;
    if (unchanged !== null) for (const other of held.keys()) held[other] = Math.min(held[other] ?? 0, unchanged);
    const alive = at === null || last === null || at - last <= sizes.lifetime * 1000;
    let read = alive ? Math.min(held[model] ?? 0, total) : 0;
    if (rules === 'openai') read = Math.floor(read / OPENAI_STEP) * OPENAI_STEP;
    if (read < minimum) read = 0;
    const cached = total >= minimum;
    held[model] = cached ? total : 0;
    used[model] = at;
    allRead += read;
    if (!price) return;
    const rates = ratesAt(price, total);
    nanos += read * rates.read + (total - read) * (rules === 'anthropic' && cached ? rates.write : rates.fresh) + sizes.output[i] * rates.output;
  });
  return { read: allRead, cost: price ? Math.round(nanos / 1000) : null };
}
