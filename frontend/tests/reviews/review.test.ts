import { describe, expect, it } from 'vitest';
import { beginning, excerpts, needles, pieces } from '../../src/reviews/marked';
import {
  blockName,
  bySeverity,
  passes,
  type Fact,
  type SourceBlock,
} from '../../src/reviews/review';

const fact = (text: string, kind = 'identifier', state: Fact['state'] = 'kept'): Fact => ({
  key: `k:${text}`,
  fact: text,
  kind,
  state,
  weight: 1,
  block: null,
  needed: null,
});
const marked = (text: string, ...facts: Fact[]) =>
  pieces(text, needles(facts))
    .filter((one) => one.key)
    .map((one) => [one.text, one.key]);

describe('facts in a text', () => {
  it('are found whole, whatever their case', () => {
    expect(
      marked('Port 8765, not 87650 or 18765; PORT', fact('8765', 'number'), fact('port')),
    ).toEqual([
      ['Port', 'k:port'],
      ['8765', 'k:8765'],
      ['PORT', 'k:port'],
    ]);
  });
  it('are the longest there is', () => {
    expect(
      marked('see src/app/main.py', fact('main.py', 'path'), fact('src/app/main.py', 'path')),
    ).toEqual([['src/app/main.py', 'k:src/app/main.py']]);
  });
  it('are a file also without its folders', () => {
    expect(
      marked('see main.py and folder', fact('/x/main.py', 'path'), fact('/x/folder', 'path')),
    ).toEqual([['main.py', 'k:/x/main.py']]);
  });
  it('may hold anything that means something in a pattern', () => {
    expect(marked('a (b+c)* [d]', fact('(b+c)*'), fact('[d]'))).toEqual([
      ['(b+c)*', 'k:(b+c)*'],
      ['[d]', 'k:[d]'],
    ]);
  });
  it('leave the text as it is', () => {
    for (const text of ['', 'nothing', 'İstanbul i̇ port ﬁ', '<b>port</b>\u202e'])
      expect(
        pieces(text, needles([fact('port'), fact('istanbul')]))
          .map((one) => one.text)
          .join(''),
      ).toBe(text);
  });
});

describe('what shows of a text', () => {
  it('is the lines that name facts, cut around the first', () => {
    const long = `${'x '.repeat(300)}port${' y'.repeat(300)}`;
    const [first, second, ...rest] = excerpts(
      `nothing\n  the port is set\nports\n${long}`,
      needles([fact('port')]),
    );
    expect(first).toBe('the port is set');
    expect(second).toMatch(/^… .*port.* …$/);
    expect(second!.length).toBeLessThan(350);
    expect(rest).toEqual([]);
  });
  it('begins with some lines', () => {
    expect(beginning('short')).toBe('short');
    expect(beginning('a\n'.repeat(99)).split('\n')).toHaveLength(14);
    expect(beginning('a'.repeat(9000))).toHaveLength(1200);
  });
});

describe('the ledger', () => {
  it('begins with what is wrong', () => {
    const all = [
      fact('a', 'path', 'kept'),
      fact('b', 'path', 'unsupported'),
      fact('c', 'path', 'lost'),
      fact('d', 'path', 'retrievable'),
      fact('e', 'path', 'lost'),
    ];
    expect(
      bySeverity(all)
        .map((one) => one.fact)
        .join(''),
    ).toBe('cebda');
  });
  it('names blocks as addresses do', () => {
    expect(['m118.0', '118.0', '118', 'm118.2', null].map(blockName)).toEqual([
      '118',
      '118',
      '118',
      '118.2',
      '',
    ]);
  });
});

it('blocks are narrowed by what they are and hold', () => {
  const block = (more: Partial<SourceBlock>) =>
    ({ kind: 'result', type: 'tool_result', file: '', error: false, ...more }) as SourceBlock;
  const shown = (one: SourceBlock, facts: Fact[] = []) =>
    (['all', 'facts', 'errors', 'user', 'files'] as const).filter((name) =>
      passes(one, name, facts),
    );
  expect(shown(block({}))).toEqual(['all']);
  expect(shown(block({ error: true }))).toEqual(['all', 'errors']);
  expect(shown(block({ kind: 'user' }), [fact('x')])).toEqual(['all', 'facts', 'user']);
  expect(shown(block({ kind: 'file' }), [fact('Error: x', 'error')])).toEqual([
    'all',
    'facts',
    'errors',
    'files',
  ]);
});
