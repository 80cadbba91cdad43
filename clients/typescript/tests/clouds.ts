/** Agents on Anthropic's clients of Amazon Bedrock and Google Vertex AI. */

import { AnthropicBedrock, AnthropicBedrockMantle } from '@anthropic-ai/bedrock-sdk';
import { AnthropicVertex } from '@anthropic-ai/vertex-sdk';
import { EventStreamCodec } from '@smithy/eventstream-codec';
import { wrap } from 'contextlab-client';
import { OAuth2Client } from 'google-auth-library';
import { type Any, env, failure, run } from './said.js';

const TEXT = new TextEncoder();
const FRAMES = new EventStreamCodec(
  (bytes) => new TextDecoder().decode(bytes),
  (text) => TEXT.encode(text),
);
const HEADERS = Object.entries({
  ':event-type': 'chunk',
  ':content-type': 'application/json',
  ':message-type': 'event',
}).map(([name, value]) => [name, { type: 'string' as const, value }]);

/** Give a provider's stream of events in Bedrock's frames. */
async function fetch(url: Any, init: Any): Promise<Response> {
  const address = String(url);
  const streams = address.endsWith('/invoke-with-response-stream');
  if (!streams) return globalThis.fetch(url, init);
  const body = JSON.stringify({ ...JSON.parse(init.body), stream: true });
  const place = address.replace('invoke-with-response-stream', 'invoke');
  const answer = await globalThis.fetch(place, { ...init, body });
  const frames = [...(await answer.text()).matchAll(/^data: (.*)$/gm)].map(([, event]) =>
    FRAMES.encode({
      headers: Object.fromEntries(HEADERS),
      body: TEXT.encode(JSON.stringify({ bytes: btoa(event ?? '') })),
    }),
  );
  const headers = { 'Content-Type': 'application/vnd.amazon.eventstream' };
  return new Response(new Blob(frames as BlobPart[]), { headers });
}

const given = { baseURL: env.PROVIDER, maxRetries: 0, fetch };
const keys = { awsRegion: 'kelp-1', awsAccessKey: 'AK', awsAccessKeyId: 'AK' };
const authClient = new OAuth2Client();
authClient.setCredentials({ access_token: 'none' });

const CLIENTS: Record<string, Any> = {
  bedrock: new AnthropicBedrock({ ...given, ...keys, awsSecretKey: 'none' }),
  mantle: new AnthropicBedrockMantle({ ...given, ...keys, awsSecretAccessKey: 'none' }),
  vertex: new AnthropicVertex({ ...given, region: 'kelp', projectId: 'sea', authClient }),
};

await run({
  /** What each client says in a call, a stream of `beta`, and a call of its copy. */
  async talks() {
    const seen: Record<string, unknown> = {};
    for (const [name, made] of Object.entries(CLIENTS)) {
      const client = wrap(made, { session: `ts ${name}` });
      const messages: Any[] = [{ role: 'user', content: 'What does the log say?' }];
      const ask = { model: 'claude-sonnet-5', max_tokens: 100, messages };
      const texts: string[] = [];
      for (const way of [
        () => client.messages.create(ask),
        () => client.beta.messages.stream(ask).finalMessage(),
        () => client.withOptions({ timeout: 20_000 }).messages.create(ask),
      ]) {
        const { content } = await way();
        texts.push(content.map((block: Any) => block.text).join(''));
        messages.push({ role: 'assistant', content }, { role: 'user', content: 'And now?' });
      }
      seen[name] = [texts, client instanceof made.constructor];
    }
    return seen;
  },

  /** A client of an older SDK, whose answers are translated above the place that we take. */
  async older() {
    const { messages, makeRequest, withOptions } = CLIENTS.bedrock;
    return failure(() => wrap({ messages, makeRequest, withOptions }, { session: 'x' }));
  },
});
