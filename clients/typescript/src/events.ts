/** Server-sent events of a provider, from bytes and back. */

import type { Json } from './json.js';

/** The data of each event of a body. */
export async function* dataOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  let data: string[] = [];
  for await (const piece of pieces(body)) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const whole = line.endsWith('\r') ? line.slice(0, -1) : line;
      if (whole.startsWith('data:')) data.push(whole.slice(whole[5] === ' ' ? 6 : 5));
      else if (!whole && data.length) {
        yield data.join('\n');
        data = [];
      }
    }
  }
}

/** A stream's pieces; not every browser iterates over streams itself. */
async function* pieces(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  let ended = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      ended = done;
      if (done) return;
      yield value;
    }
  } finally {
    if (!ended) await reader.cancel().catch(() => undefined);
  }
}

/** An event as a provider sends it. */
export function sent(data: string, name = ''): string {
  const lines = data.split('\n').map((line) => `data: ${line}\n`);
  return `${name ? `event: ${name}\n` : ''}${lines.join('')}\n`;
}

/** An event that is named by its type. */
export function ofType(event: Json): string {
  return sent(JSON.stringify(event), typeof event.type === 'string' ? event.type : '');
}

/** Texts as the bytes of a body. */
export function streamOf(texts: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await texts.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    async cancel() {
      await texts.return(undefined);
    },
  });
}
