import { afterEach, describe, expect, it, vi } from 'vitest';
import { Flag, decode } from '../../src/replay/manifest/manifest';
import { matcher, parseFilter } from '../../src/replay/state/filter';
import { Found, queryOf } from '../../src/replay/state/found.svelte';
import { manifestOf } from './manifests';

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe('found in the whole text', () => {
  it('shows what the server found, but no replacement at its place and no other tool', () => {
    const json = manifestOf(
      [
        [1, 0],
        [2, 0],
        [2, 0],
      ],
      2,
    );
    json.entries.flags = [0, Flag.toolResult, Flag.replacement];
    const { entries } = decode(json);
    const lines = ['please fix it', 'bash pytest → 3 lines', 'stub'];
    const blocks = new Set([1, 2].map((i) => `${entries.message[i]}.${entries.index[i]}`));
    const rows = (query: string) =>
      [0, 1, 2].filter(matcher(parseFilter(query), entries, 2, (i) => lines[i], new Set(), blocks));
    expect(rows('8417')).toEqual([1]);
    expect(rows('8417 tool:bash')).toEqual([1]);
    expect(rows('8417 tool:read')).toEqual([]);
    expect(rows('fix')).toContain(0);
  });

  it('asks once for what was typed, page by page', async () => {
    vi.useFakeTimers();
    vi.stubGlobal('location', { href: 'http://x/' });
    const asked: string[] = [];
    const pages = [
      { hits: [{ message: 3, index: 0 }], next: 7 },
      { hits: [{ message: 1, index: 2 }], next: null },
    ];
    vi.stubGlobal('fetch', (address: string) => {
      asked.push(address);
      return Promise.resolve(
        new Response(JSON.stringify(pages[asked.length - 1]), {
          headers: { 'content-type': 'application/json' },
        }),
      );
    });
    const found = new Found('/find');
    found.want(['84']);
    found.want(['8417', 'a b']);
    expect(found.searching).toBe(true);
    await vi.runAllTimersAsync();
    expect(asked).toEqual([
      '/find?q=8417+%22a+b%22&limit=500',
      '/find?q=8417+%22a+b%22&limit=500&after=7',
    ]);
    expect([...found.blocks]).toEqual(['3.0', '1.2']);
    expect(found.searching).toBe(false);
    found.want([]);
    expect(found.blocks.size).toBe(0);
    expect(queryOf([])).toBe('');
  });
});
