/** Agents that send messages and take contexts by themselves. */

import { ContextLab, OverBudget, Paused, Refused } from 'contextlab-client';
import { type Any, env, failure, run } from './said.js';

await run({
  /** All that a session can. */
  async whole() {
    const lab = new ContextLab();
    const fields = { agent: 'ts', model: 'claude-sonnet-5', task: 'kelp', project: 'sea' };
    const session = await lab.session('ts/run 1', fields);
    const stored = await session.append({ role: 'user', content: 'port 8417\nhost kelp' });
    await session.pin(stored.raw.last_seq ?? 0);
    const first = await session.step([], { system: 'Be brief.' });
    const second = await session.step({ role: 'assistant', content: 'Well.' }, { call: 'c1' });
    await session.note('knowledge', 'Kelp stands at port 8417.', { key: 'port' });
    const shared = await session.share('Kelp is counted.', 'counted');
    const seen = {
      lines: await session.readBack('m1.0', { lines: '2-2' }),
      context: (await session.context({ read_back: false })).request,
      steps: [first.messages, second.messages],
      board: await session.board(),
      version: shared.version,
      found: (await session.searchMemory('kelp port', { task: 'kelp' })).map((hit) => hit.text),
      subscribed: (await session.subscribe('task', 'kelp')).value,
      why: await session.why('8417'),
      verdict: await session.verdict(),
      missing: await session.readBackResult({ id: 't1', input: {} }),
      wrong: await session.readBackResult({ id: 't2', input: { ref: 'm99.0' } }),
    };
    await session.finish('succeeded');
    const path = { session_id: session.id };
    const { outcome } = await lab.request('GET', 'sessions/{session_id}', { path });
    return { ...seen, outcome };
  },

  /** Problems as the server tells them. */
  async problems() {
    const lab = new ContextLab();
    const session = await lab.session('ts problems');
    const problems: unknown[] = [];
    const wrong = { role: 'user', content: [{ type: 'text' }] };
    for (const call of [
      () => session.append([{ role: 'user', content: 'Hi.' }, wrong]),
      () => new ContextLab({ token: 'clk_wrong' }).session('x'),
      () => lab.request('GET', 'sessions/{session_id}', { path: { session_id: 'ts nowhere' } }),
    ])
      await call().catch((error: unknown) => {
        if (error instanceof Refused) problems.push([error.status, error.problem, error.message]);
      });
    return [...problems, await failure(() => lab.session('..'))];
  },

  /** Time that passes only while the client sleeps, and servers that are busy or away. */
  async patience() {
    let clock = 0;
    let slept: number[] = [];
    let keys: Any[] = [];
    let answers: (Response | Error)[] = [];
    performance.now = () => clock * 1000;
    globalThis.setTimeout = ((act: () => void, ms: number) => {
      clock += ms / 1000;
      slept.push(ms / 1000);
      queueMicrotask(act);
    }) as Any;
    globalThis.fetch = async (_, init) => {
      keys.push((init?.headers as Any)['Idempotency-Key']);
      const [next = new TypeError('fetch failed')] = answers.splice(0, 1);
      if (next instanceof Error) throw next;
      return next;
    };
    const many = <T>(n: number, made: () => T): T[] => Array.from({ length: n }, made);
    const busy = () => new Response('', { status: 429, headers: { 'Retry-After': '7' } });
    const away = () => new TypeError('fetch failed');
    const done = () => Response.json({ id: 'known', external_id: 's' });
    const seen: unknown[] = [];
    const lab = new ContextLab({ patience: 180 });
    for (const first of [many(9, busy), many(12, away), many(99, busy), [done()]]) {
      [answers, slept, keys] = [[...first, ...(first.length < 99 ? [done()] : [])], [], []];
      const result = await failure(() => lab.session('s', { title: String(first.length % 98) }));
      seen.push({ result, slept, keys });
    }
    return seen;
  },

  /** A server that is addressed wrongly: what is said, and how often it was asked. */
  async misaddressed() {
    const { fetch } = globalThis;
    let asked = 0;
    globalThis.fetch = async (...given) => {
      asked += 1;
      // Without a network no name is known, and each is asked for again.
      const unknown = Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' });
      if (env.UNKNOWN) throw new TypeError('fetch failed', { cause: unknown });
      return fetch(...given);
    };
    return [...(await failure(() => new ContextLab().session('s'))), asked];
  },

  /** Calls that a person or a budget forbids. */
  async forbidden() {
    const session = await new ContextLab().session(env.CALLED ?? '');
    const seen: unknown[] = [];
    for (const call of [() => session.context(), () => session.reserve('c1', { tokens: 10 })])
      await call().catch((error: unknown) => {
        if (error instanceof Paused) seen.push([error.name, error.message, error.retryAfter]);
      });
    return seen;
  },

  /** Reservations within a budget and beyond it. */
  async spends() {
    const session = await new ContextLab().session(env.CALLED ?? '');
    const { can_proceed } = await session.reserve('c1', { tokens: 4000, heedAdvice: true });
    const error: unknown = await session.reserve('c2', { tokens: 4000 }).catch((one) => one);
    const over = error instanceof OverBudget ? [error.status, error.requireApproval] : [];
    return [can_proceed, ...over, await session.release('c1'), await session.release()];
  },
});
