import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { simulate, type Line } from '../../src/lab/stream';

/** Answers with a first line, and goes on until `signal` ends it. */
function answers(): void {
  vi.stubGlobal('fetch', (_: string, { signal }: { signal: AbortSignal }) => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{"kind":"oracle","cost_microusd":1}\n'));
        signal.addEventListener('abort', () => controller.error(signal.reason));
      },
    });
    return Promise.resolve(new Response(body));
  });
}

beforeEach(() => vi.stubGlobal('document', { querySelector: () => null, cookie: '' }));
afterEach(() => vi.unstubAllGlobals());

test('a simulation that is no longer wanted ends without an error', async () => {
  answers();
  const controller = new AbortController();
  const lines: Line[] = [];
  const ended = simulate('/', {}, controller.signal, (line) => {
    lines.push(line);
    controller.abort();
  });
  await expect(ended).resolves.toBeUndefined();
  expect(lines).toHaveLength(1);
});

test('another end of the stream is an error', async () => {
  vi.stubGlobal('fetch', () => {
    const body = new ReadableStream({ start: (controller) => controller.error(new Error('lost')) });
    return Promise.resolve(new Response(body));
  });
  const ended = simulate('/', {}, new AbortController().signal, () => {});
  await expect(ended).rejects.toThrow('lost');
});
