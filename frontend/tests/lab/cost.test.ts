import { describe, expect, it } from 'vitest';
import { estimate } from '../../src/lab/estimate';
import { type Sizes } from '../../src/lab/sizes';
import { type PolicyDocument } from '../../src/lab/policy';
import { rulesInWords } from '../../src/lab/rules';
import { recorded, totalsOf } from '../../src/lab/totals';
import { offload, policy, session, early, price } from './sessions';

describe('what it costs', () => {
  const dollars = (nanos: number) => Math.round(nanos / 1000);

  it('reads what stood and writes what is new', () => {
    const { cost, read } = estimate(session(2), policy());
    expect(read).toBe(3000);
    expect(cost).toBe(dollars(3000 * 3750 + 50 * 15_000 + 3000 * 300 + 1100 * 3750 + 50 * 15_000));
  });

  it('writes again all that follows an edit', () => {
    // At step 4 what came at step 2 changes: 3,000 before it are read.
    expect(estimate(session(4), policy(offload())).read).toBe(3000 + 4100 + 3000);
  });

  it('finds only the hidden prompt where more than 20 blocks changed, but for caches without breakpoints', () => {
    const wide = { blocks: Array(4).fill(30) };
    // 1,000 hidden are below the minimum
    expect(estimate(session(4, wide), policy(offload())).read).toBe(3000 + 4100 + 0);
    expect(estimate(session(4, { ...wide, rules: 'openai' }), policy(offload())).read).toBe(
      2944 + 4096 + 2944,
    );
  });

  it('reads nothing after the TTL, nor of another model', () => {
    expect(estimate(session(2, { at: [0, 300_000] }), policy()).read).toBe(3000);
    expect(estimate(session(2, { at: [0, 300_001] }), policy()).read).toBe(0);
    expect(estimate(session(3, { models: [0, 1, 0] }), policy()).read).toBe(3000);
  });

  const under = (ttl: PolicyDocument['ttl']): PolicyDocument => ({
    ...policy(),
    ttl,
  });

  it('keeps entries as long as the policy asks, and pays for it', () => {
    const at = { at: [0, 300_001], hidden: 1500 }; // prompts of 3,500 and 4,600
    expect(
      ['recorded', '5m', '1h', 'mixed'].map(
        (ttl) => estimate(session(2, at), under(ttl as never)).read,
      ),
    ).toEqual([0, 0, 3500, 1500]);
    expect(estimate(session(2, { ...at, ttl: '1h' }), under('recorded')).read).toBe(3500);
    const written = 2 * 50 * 15_000;
    expect(estimate(session(2, at), under('1h')).cost).toBe(
      dollars(3500 * 6000 + 3500 * 300 + 1100 * 6000 + written),
    );
    expect(estimate(session(2, at), under('mixed')).cost).toBe(
      dollars(1500 * 6000 + 2000 * 3750 + 1500 * 300 + 3100 * 3750 + written),
    );
    // 1,000 hidden are below the minimum
    expect(estimate(session(2, { at: [0, 300_001] }), under('mixed')).read).toBe(0);
    expect(recorded(session(2, { recorded: [3000, 4100], at: [0, 300_001] })).read).toBe(0);
  });

  it('follows automatic caches by their steps, lags, TTLs and what writing costs, model by model', () => {
    const late = { step: 1024, lag: 256, behind: 0, minimum: 1024, ttl: 1800, writes: true };
    const gpt = { rules: 'openai', kept: [late] };
    expect(estimate(session(2, gpt), policy())).toMatchObject({
      read: 2816,
      cost: dollars(3000 * 3750 + 2816 * 300 + 1284 * 3750 + 2 * 50 * 15_000),
    });
    expect(estimate(session(2, { ...gpt, kept: [early] }), under('1h')).cost).toBe(
      dollars(3000 * 3000 + 2944 * 300 + 1156 * 3000 + 2 * 50 * 15_000),
    );
    expect(
      [1_800_000, 1_800_001].map(
        (ms) => estimate(session(2, { ...gpt, at: [0, ms] }), policy()).read,
      ),
    ).toEqual([2816, 0]);
    const gemini = { step: 4096, lag: 0, behind: 0, minimum: 4096, ttl: 3600, writes: false };
    expect(
      estimate(session(4, { rules: 'gemini', kept: [{ ...gemini, behind: 1000 }] }), policy()).read,
    ).toBe(4096);
    expect(estimate(session(4, { rules: 'gemini', kept: [gemini] }), policy()).read).toBe(
      4096 + 4096,
    );
    expect(
      estimate(
        session(2, { rules: 'prefix', kept: [{ ...gemini, step: 64, minimum: 64 }] }),
        policy(),
      ).read,
    ).toBe(2944);
    expect(estimate(session(2, { rules: 'none' }), policy())).toMatchObject({
      read: 0,
      cost: dollars(7100 * 3000 + 2 * 50 * 15_000),
    });
    expect(
      estimate(session(3, { ...gpt, kept: [early, late], models: [0, 1, 1] }), policy()).read,
    ).toBe(3840);
  });

  it('says of each model by whose rules, and how long its entries live', () => {
    const all = [
      session(2),
      session(2),
      session(2, { model: 'gpt-5', rules: 'openai', cache: "OpenAI's automatic cache" }),
      session(2, { model: 'x', rules: 'unknown', price: null }),
    ];
    const [claude, gpt, other] = rulesInWords(all, 'mixed');
    expect(claude).toBe(
      "claude-x, 2 sessions: Anthropic's rules; tools and system prompt live an hour, the rest 5 minutes, " +
        'as the draft asks.',
    );
    expect(gpt).toContain("gpt-5, 1 session: OpenAI's automatic cache; entries live 10 minutes");
    expect(other).toContain('it counts for tokens only');
    expect(rulesInWords(all, 'recorded')[0]).toContain('entries live 5 minutes, as recorded');
  });

  it('takes tier rates for long prompts, and none where they are unknown', () => {
    const tiers = {
      ...price,
      tiers: [[4000, { ...price, write_5m: 7500, output: 0, read: 600 }]],
    } as Sizes['price'];
    expect(estimate(session(2, { price: tiers }), policy()).cost).toBe(
      dollars(3000 * 3750 + 50 * 15_000 + 3000 * 600 + 1100 * 7500),
    );
    expect(estimate(session(2, { price: null }), policy())).toMatchObject({
      cost: null,
      read: 3000,
    });
    expect(estimate(session(2, { rules: 'unknown' }), policy())).toMatchObject({
      cost: null,
      read: null,
    });
  });

  it('adds up sessions, with the cost of those that have one', () => {
    const some = [estimate(session(2), policy()), estimate(session(3, { price: null }), policy())];
    const totals = totalsOf(some);
    expect(totals).toMatchObject({
      sent: 7100 + 12_300,
      peak: 5200,
      cost: some[0].cost,
      priced: 1,
    });
    expect(totals.read).toBeCloseTo((3000 + 7100) / 19_400);
    expect(totalsOf([])).toMatchObject({ sent: 0, cost: null, read: null });
  });

  it('takes a recording as its log shows it', () => {
    const lived = recorded(session(3, { recorded: [3000, 9000, 4000] }));
    expect(lived).toMatchObject({ sent: 16_000, peak: 9000, compactions: 1, edits: 1 });
    expect(lived.read).toBe(3000 + 3000);
  });
});
