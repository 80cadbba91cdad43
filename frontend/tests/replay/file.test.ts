import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Answers } from '../../src/replay/file/answers';
import { addressOf, placeIn } from '../../src/replay/manifest/address';
import { ask, answerFrom, withQuery } from '../../src/web/request';

beforeEach(() => vi.stubGlobal('location', { href: 'file:///home/mara/replay.html' }));
afterEach(() => vi.unstubAllGlobals());

const lines: Record<string, unknown> = {
  'manifest recorded': { v: 1 },
  'previews recorded': ['a', 'b', 'c'],
  'entry recorded 0': { i: 0, sha: 'x', message: 1, index: 0, versions: [{ sha: 'x' }] },
  'entry recorded 1': { i: 1, sha: 'y', message: null, index: null, versions: [] },
  'entry recorded 2': { i: 2, sha: 'y', message: 2, index: 1, versions: [] },
  'content x': { text: 'Port 8417\tand a tab', json: '{}' },
  'content y': { text: 'The PORT is open', json: '[]' },
};
const text = Object.entries(lines)
  .map(([name, value]) => `${name}\t${JSON.stringify(value)}\n`)
  .join('');

describe('a file', () => {
  const from = <T>(name: string, query: Record<string, string | number>): Promise<T> => {
    answerFrom(new Answers(text).answer);
    return ask<T>(withQuery(name, query));
  };

  it('answers what the page asks for, the recorded run by default', async () => {
    expect(await from('manifest', { run: '' })).toEqual({ v: 1 });
    expect(await from('previews', { run: 'recorded', at: '2,0,9' })).toEqual({
      at: [2, 0, 9],
      rows: ['c', 'a', null],
    });
    expect(await from('previews', { from: 1, to: 3 })).toEqual({ from: 1, rows: ['b', 'c'] });
    expect(await from('texts', { at: '1' })).toEqual({ at: [1], rows: ['The PORT is open'] });
    expect(await from('entry', { i: 0 })).toMatchObject({
      text: 'Port 8417\tand a tab',
      json: '{}',
      versions: [{ sha: 'x', text: 'Port 8417\tand a tab' }],
    });
  });

  it('finds words in whole texts, and no replacement', async () => {
    const found = async (q: string) =>
      (await from<{ hits: { message: number }[] }>('find', { q })).hits.map((one) => one.message);
    expect(await found('port')).toEqual([1, 2]);
    expect(await found('port 8417')).toEqual([1]);
    expect(await found('"port is" open')).toEqual([2]);
  });

  it('does not have other runs', async () => {
    await expect(from('manifest', { run: 'managed' })).rejects.toMatchObject({
      problem: { status: 404 },
    });
  });

  it('keeps its place behind the sign that a file may change', () => {
    const place = { step: 12, run: 'managed', message: '4.1', view: 'treemap' } as const;
    const address = addressOf('#', place);
    expect(address.startsWith('#steps/12/?')).toBe(true);
    expect(placeIn(`file:///home/mara/replay.html${address}`)).toMatchObject(place);
    expect(placeIn('https://x/sessions/1/?m=4#timeline')).toMatchObject({
      step: null,
      message: '4',
    });
  });
});
