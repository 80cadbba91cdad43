/** Agents on openai: chat completions and responses, streamed or not. */

import { wrap } from 'contextlab-client';
import OpenAI, { AzureOpenAI } from 'openai';
import { type Any, all, env, failure, run } from './said.js';

const model = 'gpt-5.1';
const gpt = new OpenAI({ apiKey: 'none', baseURL: `${env.PROVIDER}/v1`, maxRetries: 0 });
const parameters = { type: 'object', properties: { cmd: { type: 'string' } } };

/** An agent with one tool, which keeps its history as the API's documentation shows. */
class Agent {
  history: Any[] = [{ role: 'user', content: 'What does the log say?' }];
  events: Any[] = [];

  constructor(
    readonly client: OpenAI,
    readonly streamed: boolean,
  ) {}

  /** The text of a reply, and the ids of its calls. */
  async chat(): Promise<[string, string[]]> {
    const given: Any = {
      model,
      tools: [{ type: 'function', function: { name: 'shell', parameters } }],
      messages: [{ role: 'system', content: 'Be brief.' }, ...this.history],
    };
    const { completions } = this.client.chat;
    const stream = this.streamed ? completions.stream(given) : null;
    stream?.on('chunk', (chunk) => this.events.push(chunk));
    const answer: Any = await (stream?.finalChatCompletion() ?? completions.create(given));
    const { content, tool_calls } = answer.choices[0].message;
    const calls = (tool_calls ?? []).map(({ id, function: { name, arguments: text } }: Any) => {
      return { id, type: 'function', function: { name, arguments: text } };
    });
    this.history.push({
      role: 'assistant',
      content,
      ...(calls.length ? { tool_calls: calls } : {}),
    });
    return [content ?? '', calls.map((call: Any) => call.id)];
  }

  /** As `chat`; if streamed, the tools are an item, as Codex sends them. */
  async responses(): Promise<[string, string[]]> {
    const tools = [{ type: 'function', name: 'shell', parameters, strict: false }];
    const item = { type: 'additional_tools', role: 'developer', tools };
    const given: Any = {
      model,
      instructions: 'Be brief.',
      ...(this.streamed ? { input: [item, ...this.history] } : { input: this.history, tools }),
      store: false,
      include: ['reasoning.encrypted_content'],
    };
    let answer: Any;
    if (this.streamed) {
      const stream = this.client.responses.stream(given);
      this.events.push(...(await all<Any>(stream)));
      answer = await stream.finalResponse();
    } else answer = await this.client.responses.create(given);
    this.history.push(...answer.output);
    const calls = answer.output.filter((item: Any) => item.type === 'function_call');
    return [answer.output_text, calls.map((call: Any) => call.call_id)];
  }

  give(api: string, call: string, output: string): void {
    this.history.push(
      api === 'chat'
        ? { role: 'tool', tool_call_id: call, content: output }
        : { type: 'function_call_output', call_id: call, output },
    );
  }
}

await run({
  /** A model calls a tool, reads back, and goes on. */
  async talks() {
    const seen: Record<string, unknown> = {};
    for (const api of ['chat', 'responses'] as const)
      for (const streamed of [false, true]) {
        const session = `ts-${api}-${streamed}`;
        const agent = new Agent(wrap(gpt, { session }), streamed);
        const [, [call = '']] = await agent[api]();
        agent.give(api, call, env.LOG);
        const [text, calls] = await agent[api]();
        agent.history.push({ role: 'user', content: 'Thanks.' });
        const [last] = await agent[api]();
        seen[session] = { call, text, calls, last, history: agent.history, events: agent.events };
      }
    return seen;
  },

  async ways() {
    const azure = wrap(
      new AzureOpenAI({ apiKey: 'none', endpoint: env.PROVIDER, apiVersion: '2025-01-01' }),
      { session: 'ts azure' },
    );
    const client = wrap(gpt, { session: 'ts ways' });
    const messages = [{ role: 'user' as const, content: 'Hi.' }];
    const parsed: Any = await azure.chat.completions.parse({
      model,
      messages,
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'kelp', strict: true, schema: { type: 'object' } },
      },
    });
    const { data } = await client.responses.create({ model, input: 'Hi.' }).withResponse();
    const raw = await client.chat.completions.create({ model, messages }).asResponse();
    return [parsed.choices[0].message.content, data.output_text, await raw.json()];
  },

  async refused() {
    const client: Any = wrap(gpt, { session: 'ts refused gpt' });
    const messages = [{ role: 'user', content: 'Hi.' }];
    const { chat, responses } = client;
    return [
      await failure(() => chat.completions.create({ model, messages, n: 2 })),
      await failure(() => responses.create({ input: 'x', previous_response_id: 'resp_1' })),
      await failure(() => responses.create({ input: 'x', background: true })),
      await failure(() => responses.create({ prompt: { id: 'p' } })),
      await failure(() => client.completions.create({ model, prompt: 'x' })),
      await failure(() => responses.compact({ model, input: 'x' })),
      await failure(() => client.post('/threads/runs', { body: {} })),
    ];
  },
});
