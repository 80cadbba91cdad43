import { describe, expect, it } from 'vitest';
import { collapsed, counts, openAtFirst, takenFor, type DiffRow } from '../../src/replay/diff/diff';
import { withChips } from '../../src/web/invisible';
import { compareTexts, folded, paired } from '../../src/replay/diff/words';

const row = (
  op: DiffRow['op'],
  kind: DiffRow['kind'],
  revision: number | null = null,
): DiffRow => ({
  op,
  kind,
  a: op === 'added' ? [] : [1],
  b: op === 'removed' ? [] : [1],
  tokens_a: op === 'added' ? 0 : 10,
  tokens_b: op === 'removed' ? 0 : 10,
  reason: null,
  revision,
});

describe('structure', () => {
  it('makes one row of what one revision removed, whatever the kinds', () => {
    const rows = collapsed([
      row('same', 'user'),
      row('removed', 'result', 1),
      row('removed', 'assistant', 1),
      row('removed', 'result', 1),
      row('removed', 'result', 2),
      row('added', 'summary', 1),
    ]);
    expect(rows.map((one) => [one.row.op, one.row.a.length, one.kinds.length])).toEqual([
      ['same', 1, 1],
      ['removed', 3, 2],
      ['removed', 1, 1],
      ['added', 0, 1],
    ]);
    expect(rows[1].kinds[0]).toEqual(['result', 20]);
    expect(counts([row('same', 'user'), row('added', 'user')])).toEqual([
      { op: 'same', blocks: 1, a: 10, b: 10 },
      { op: 'added', blocks: 1, a: 0, b: 10 },
    ]);
  });

  it('puts beside a summary what its revision took out, and all that is gone where that was an earlier one', () => {
    const rows = [
      { ...row('removed', 'user', 1), a: [4] },
      { ...row('removed', 'file', 2), a: [2] },
      row('added', 'summary', 2),
    ];
    expect(takenFor(rows, rows[2])).toEqual([2]);
    expect(takenFor(rows, { ...rows[2], revision: 9 })).toEqual([2, 4]);
  });

  it('opens summaries, and pairs while they are few', () => {
    const pairs = (count: number) =>
      Array.from({ length: count }, () => row('replaced', 'result', 1));
    expect(
      openAtFirst(collapsed([row('removed', 'user', 1), row('added', 'summary', 1), ...pairs(3)])),
    ).toEqual([1, 2, 3, 4]);
    expect(openAtFirst(collapsed([row('added', 'summary', 1), ...pairs(4)]))).toEqual([0]);
  });
});

describe('text', () => {
  const text = (lines: { pieces: { text: string }[] }[]) =>
    lines.map((line) => line.pieces.map((piece) => piece.text).join(''));

  it('loses nothing and marks the words that changed', () => {
    const { lines } = compareTexts('a\nthe quick fox runs\nz', 'a\nthe slow fox runs\nz\nend');
    expect(text(lines.filter((line) => line.op !== 'added'))).toEqual([
      'a',
      'the quick fox runs',
      'z',
    ]);
    expect(text(lines.filter((line) => line.op !== 'removed'))).toEqual([
      'a',
      'the slow fox runs',
      'z',
      'end',
    ]);
    expect(lines[1].pieces.filter((piece) => piece.changed).map((piece) => piece.text)).toEqual([
      'quick',
    ]);
  });

  it('falls back to lines when there is too much', () => {
    const many = (word: string) =>
      Array.from({ length: 1500 }, (_, i) => `${word} ${i}`).join('\n');
    const compared = compareTexts(many('a'), many('b'), 60_000);
    expect([compared.byWord, compared.why]).toEqual([false, 'too large to compare word by word']);
    expect(compareTexts('x'.repeat(600_000), 'y').why).toBe('too large to compare');
  });

  it('folds what is far from a change, and pairs both sides', () => {
    const before = Array.from({ length: 50 }, (_, i) => `line ${i}`);
    const after = before.with(25, 'other');
    const { lines } = compareTexts(before.join('\n'), after.join('\n'));
    const shown = folded(lines, 3, new Set());
    expect(shown.map((line) => ('fold' in line ? line.count : line.op[0])).join(' ')).toBe(
      '22 s s s r a s s s 21',
    );
    expect(folded(lines, 3, new Set([0])).length).toBe(22 + 8 + 1);
    const rows = paired(shown);
    expect(rows[4]).toMatchObject([{ op: 'removed' }, { op: 'added' }]);
  });

  it('shows characters that hide', () => {
    expect(withChips('a\u202eb').map((part) => part.text)).toEqual(['a', 'RLO', 'b']);
    expect(withChips('tab\tstays\ud800').map((part) => [part.text, part.chip])).toEqual([
      ['tab\tstays', false],
      ['U+D800', true],
    ]);
    expect(withChips('😀 fine')).toEqual([{ text: '😀 fine', chip: false }]);
  });
});
