/* What prompts cost with a cache: an unchanged prefix is read, what follows an edit is written again.
   Follows compaction/cache/simulator.py and automatic.py, whose rules they are. */
import type { TTL } from './policy';
import type { Kept, Rates, Sizes } from './sizes';

/** A prompt in tokens; `unchanged` of the one before still stand, null where all of it does. */
export type Prompt = { total: number; unchanged: number | null };

/** What a call read, and what it wrote for five minutes and for an hour; the rest is uncached. */
type Use = { read: number; written: number; writtenHour: number };
type Held = { tokens: number; used: number | null }; // of one model; when it was last used (ms)
type Cache = (held: Held, total: number, at: number | null, model: number) => Use;

const FIVE_MINUTES = 300_000; // ms
const HOUR = 3_600_000;

/** The rates of a whole call: long prompts may cost more. */
function ratesAt(price: Rates, prompt: number): Rates {
  let rates = price;
  for (const [over, tier] of price.tiers ?? []) if (prompt > over) rates = tier;
  return rates;
}

const idle = (held: Held, at: number | null): number =>
  at === null || held.used === null ? 0 : Math.max(at - held.used, 0);

/** Breakpoints that live as long as a policy asks; `mixed` keeps the hidden prompt for an hour. */
function anthropic({ minimum, hidden, ttl: recorded }: Sizes, ttl: TTL): Cache {
  const asked = ttl === 'recorded' ? recorded : ttl;
  const hour = asked === 'mixed' && hidden >= minimum ? hidden : asked === '1h' ? Infinity : 0;
  return (held, total, at) => {
    const waited = idle(held, at);
    let read = Math.min(
      held.tokens,
      total,
      waited <= FIVE_MINUTES ? Infinity : waited <= HOUR ? hour : 0,
    );
    if (read < minimum) read = 0;
    if (total < minimum) return { read: 0, written: 0, writtenHour: 0 };
    const writtenHour = Math.max(Math.min(hour, total) - read, 0);
    return { read, written: total - read - writtenHour, writtenHour };
  };
}

/** How much of an unchanged prefix of so many tokens can be read. */
const wholeSteps = (tokens: number, { step, lag, behind, minimum }: Kept): number =>
  tokens < minimum ? 0 : Math.max(Math.floor((tokens - behind + lag) / step) * step - lag, 0);

/** Automatic caches: a TTL is neither requested nor promised. */
function automatic({ kept }: Sizes): Cache {
  return (held, total, at, model) => {
    const rule = kept[model];
    const read =
      idle(held, at) > rule.ttl * 1000 ? 0 : wholeSteps(Math.min(held.tokens, total), rule);
    return {
      read,
      written: rule.writes && total >= rule.minimum ? total - read : 0,
      writtenHour: 0,
    };
  };
}

const none: Cache = () => ({ read: 0, written: 0, writtenHour: 0 });

function cacheOf(sizes: Sizes, ttl: TTL): Cache {
  if (sizes.rules === 'anthropic') return anthropic(sizes, ttl);
  return sizes.rules === 'none' ? none : automatic(sizes);
}

/** Tokens read, and micro-dollars for all calls, output included; null where the rules or the price are unknown. */
export function cost(
  sizes: Sizes,
  prompts: readonly Prompt[],
  ttl: TTL,
): { read: number | null; cost: number | null } {
  const { rules, price } = sizes;
  if (rules === 'unknown') return { read: null, cost: null };
  const send = cacheOf(sizes, ttl);
  const caches: Held[] = sizes.kept.map(() => ({ tokens: 0, used: null })); // each model has its own
  let nanos = 0;
  let allRead = 0;
  prompts.forEach(({ total, unchanged }, i) => {
    const model = sizes.models[i];
    if (unchanged !== null)
      for (const held of caches) held.tokens = Math.min(held.tokens, unchanged);
    const { read, written, writtenHour } = send(caches[model], total, sizes.at[i], model);
    const isKept = rules !== 'anthropic' || total >= sizes.minimum;
    caches[model] = { tokens: isKept ? total : 0, used: sizes.at[i] };
    allRead += read;
    if (!price) return;
    const rates = ratesAt(price, total);
    const uncached = total - read - written - writtenHour;
    nanos +=
      read * rates.read +
      written * rates.write_5m +
      writtenHour * rates.write_1h +
      uncached * rates.uncached +
      sizes.output[i] * rates.output;
  });
  return { read: allRead, cost: price ? Math.round(nanos / 1000) : null };
}
