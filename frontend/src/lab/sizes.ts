/* What the lab knows of a session: sizes by step, and prices; no content. */

/** Nano-dollars a token; `tiers`: what a call costs whose prompt exceeds so many tokens. */
export type Rates = {
  uncached: number;
  read: number;
  write_5m: number;
  write_1h: number;
  output: number;
  tiers?: [number, Rates][];
};

/** How an automatic cache keeps prefixes: reads are multiples of `step` less `lag`, each once `behind` tokens
    follow it; `ttl` in seconds. */
export type Kept = {
  step: number;
  lag: number;
  behind: number;
  minimum: number;
  ttl: number;
  writes: boolean;
};

/** Sizes of a session as sessions/api/lab/curves.py gives them; lists have one item per step. */
export type Sizes = {
  id: string;
  title: string;
  agent: string;
  model: string;
  steps: number;
  window: number;
  window_assumed: boolean;
  hidden: number;
  price: Rates | null;
  rules: string; // "anthropic", another provider, "none" or "unknown"
  cache: string; // whose it is and what it promises, in words
  minimum: number;
  ttl: '5m' | '1h'; // as most recorded writes asked
  kept: Kept[]; // by model
  models: number[]; // which one is called
  at: (number | null)[]; // ms
  blocks: number[];
  other: number[];
  fixed: number[]; // of `other`, as are
  users: number[];
  tools: number[][];
  output: number[];
  recorded: number[];
};

/** Where the session with most steps stands, the first of them: its curves are drawn unless another is chosen. */
export const longest = (sizes: readonly Pick<Sizes, 'steps'>[]): number =>
  sizes.reduce((best, one, i) => (one.steps > sizes[best].steps ? i : best), 0);
