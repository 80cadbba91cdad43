import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

class Socket {
  static readonly OPEN = 1;
  static readonly CONNECTING = 0;
  static all: Socket[] = [];
  readyState = 0;
  sent: string[] = [];
  onopen?: () => void;
  onclose?: (event: { code: number }) => void;
  onmessage?: (event: { data: string }) => void;
  constructor() {
    Socket.all.push(this);
  }
  send(text: string): void {
    this.sent.push(text);
  }
  close(): void {
    this.readyState = 3;
  }
  open(): void {
    this.readyState = Socket.OPEN;
    this.onopen?.();
  }
  end(code: number): void {
    this.readyState = 3;
    this.onclose?.({ code });
  }
}

const pill = { hidden: true, textContent: '', title: '', dataset: {} as Record<string, string> };
const main = {
  shown: ['the content'],
  replaceChildren: (...shown: string[]) => (main.shown = shown),
};
const made = () => ({ textContent: '', setAttribute: () => {}, append: () => {} });
const newest = () => Socket.all[Socket.all.length - 1];

beforeEach(() => {
  vi.useFakeTimers();
  vi.resetModules();
  Socket.all = [];
  vi.stubGlobal('WebSocket', Socket);
  vi.stubGlobal('location', new URL('http://localhost/'));
  vi.stubGlobal('addEventListener', () => {});
  vi.stubGlobal('document', {
    hidden: false,
    documentElement: { dataset: {} },
    querySelectorAll: () => [pill],
    querySelector: () => main,
    createElement: made,
    addEventListener: () => {},
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function watching(): Promise<(number | null)[]> {
  const { watchTopic } = await import('../../src/web/socket');
  const versions: (number | null)[] = [];
  watchTopic('job:1', (version) => versions.push(version));
  return versions;
}

describe('the socket of a page', () => {
  it('is live once the server answers, and looks for itself without it', async () => {
    const versions = await watching();
    newest().open();
    expect(newest().sent).toEqual(['{"watch":["job:1"]}']);
    newest().onmessage?.({ data: '{"topic": "job:1", "version": 3}' });
    expect([pill.textContent, pill.dataset.state, versions]).toEqual(['live', 'live', [3]]);
    newest().end(1006);
    expect([pill.textContent, pill.dataset.state]).toEqual(['reconnecting', 'waiting']);
    vi.advanceTimersByTime(8000);
    expect(versions).toEqual([3, null]);
  });

  it('removes the content and asks no more once the server ended the access', async () => {
    const versions = await watching();
    newest().open();
    newest().onmessage?.({ data: '{"topic": "job:1", "version": 3}' });
    newest().end(4401);
    expect(pill.textContent).toBe('no access');
    expect(main.shown).not.toContain('the content');
    vi.advanceTimersByTime(60_000);
    expect([Socket.all.length, versions]).toEqual([1, [3]]);
  });

  it('says that too many pages are open, and goes on looking while it is turned away', async () => {
    const versions = await watching();
    for (let turn = 0; turn < 10; turn++) {
      if (newest().readyState === 0) {
        newest().open();
        newest().end(4429);
      }
      expect([pill.textContent, pill.dataset.state]).toEqual(['every 8 s', 'waiting']);
      expect(pill.title).toContain('too many pages open');
      vi.advanceTimersByTime(4000);
    }
    expect(Socket.all.length).toBeGreaterThan(3);
    expect(versions).toEqual([null, null, null, null, null]);
  });
});
