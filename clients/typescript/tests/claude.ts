/** Agents on @anthropic-ai/sdk: every way to call a model. */

import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { ContextLab, wrap } from 'contextlab-client';
import { type Any, all, env, failure, run } from './said.js';

const claude = new Anthropic({ apiKey: 'none', baseURL: env.PROVIDER, maxRetries: 0 });
const bash = betaTool({
  name: 'Bash',
  description: 'Run a command.',
  inputSchema: { type: 'object', properties: { command: { type: 'string' } } },
  run: () => 'no such file',
});
const ASK: Any = {
  model: 'claude-sonnet-5',
  max_tokens: 100,
  tools: [{ name: 'Bash', description: 'Run a command.', input_schema: { type: 'object' } }],
  messages: [
    { role: 'user', content: 'What does the log say?' },
    {
      role: 'assistant',
      content: [{ type: 'tool_use', id: 't1', name: 'Bash', input: { command: 'make test' } }],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: env.LOG }] },
  ],
};

/** The reply of each way, and what the agent saw on it. */
const WAYS: Record<string, (client: Anthropic) => Promise<unknown>> = {
  create: (client) => client.messages.create(ASK),
  beta: (client) => client.beta.messages.create({ ...ASK, betas: ['context-1m-2025-08-07'] }),
  parse: (client) => client.messages.parse(ASK),
  copy: (client) => client.withOptions({ timeout: 20_000 }).messages.create(ASK),
  raw: async (client) => (await client.messages.create(ASK).asResponse()).json(),
  both: async (client) => {
    const { data, response } = await client.messages.create(ASK).withResponse();
    return { ...(data as object), url: response.url };
  },
  runner: (client) =>
    client.beta.messages.toolRunner({ ...ASK, tools: [bash], thread: false }).runUntilDone(),
  events: async (client) => ({
    events: await all<Any>(client.messages.create({ ...ASK, stream: true }) as Any),
  }),
  stream: (client) => client.messages.stream(ASK).finalMessage(),
  betaStream: (client) => client.beta.messages.stream(ASK).finalMessage(),
};

await run({
  async ways() {
    const seen: Record<string, unknown> = {};
    for (const [name, way] of Object.entries(WAYS))
      seen[name] = await way(wrap(claude, { session: `ts ${name}`, agent: 'typescript' }));
    return seen;
  },

  /** An agent that goes on after the model has read back, and a provider that is overloaded once. */
  async talk() {
    const client = wrap(claude.withOptions({ maxRetries: 1 }), { session: 'ts talk' });
    const messages = [...ASK.messages];
    const texts: string[] = [];
    for (const next of ['And now?', 'Thanks.', '']) {
      const stream = client.messages.stream({ ...ASK, messages });
      const { content } = await stream.finalMessage();
      texts.push(
        content.map((block) => (block.type === 'text' ? block.text : block.type)).join(''),
      );
      messages.push({ role: 'assistant', content }, { role: 'user', content: next });
    }
    return texts;
  },

  /** What each call sends, while another client takes messages back without adding one. */
  async rewound() {
    const sent: unknown[] = [];
    const { fetch } = globalThis;
    globalThis.fetch = async (url, init) => {
      const answer = await fetch(url, init);
      const { messages, history, after } = JSON.parse(String(init?.body));
      if (String(url).endsWith('/steps'))
        sent.push([answer.status, messages?.length ?? 0, history, after != null]);
      return answer;
    };
    const client = wrap(claude, { session: 'ts rewound' });
    const messages: Any[] = [];
    for (const text of ['One.', 'Two.', 'Three.', 'Four.']) {
      messages.push({ role: 'user', content: text });
      const { content } = await client.messages.create({ ...ASK, messages });
      messages.push({ role: 'assistant', content });
      if (text === 'Two.') {
        const other = await new ContextLab().session('ts rewound');
        await other.append(messages.slice(0, 2), { history: true });
      }
    }
    return sent;
  },

  /** What cannot be managed. */
  async refused() {
    const client: Any = wrap(claude, { session: 'ts refused' });
    const params = { ...ASK, messages: [{ role: 'user', content: 'Hi.' }] };
    const { input_tokens } = await client.messages.countTokens({
      model: params.model,
      messages: params.messages,
    });
    return {
      counted: input_tokens,
      errors: [
        await failure(() => wrap({}, { session: 'x' })),
        await failure(() =>
          client.messages.batches.create({ requests: [{ custom_id: 'a', params }] }),
        ),
        await failure(() => client.post('/v1/complete', { body: params })),
        await failure(() => client.messages.create({ ...params, messages: [] })),
        await failure(() => client.withOptions({}).messages.create({ ...params, thread: 'new' })),
        await failure(() => client.beta.messages.toolRunner(params).runUntilDone()),
      ],
    };
  },

  /** One call, in a session that the environment names. */
  async once() {
    const { setTimeout } = globalThis;
    // Waits of a paused session take seconds; others are the SDK's limits.
    globalThis.setTimeout = ((act: Any, ms: number) => {
      const waits = ms >= 5000 && ms <= 7500;
      if (waits) console.log('"waits"');
      return setTimeout(act, waits ? 1 : ms);
    }) as Any;
    const server = new ContextLab({ patience: Number(env.PATIENCE) });
    const client = wrap(claude, { session: env.CALLED ?? '', server });
    const messages = [{ role: 'user' as const, content: 'Hi.' }];
    return failure(async () => (await client.messages.create({ ...ASK, messages })).content);
  },
});
