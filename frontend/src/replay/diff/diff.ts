/* Two contexts, block by block, as the diff endpoint gives them. */
import type { Kind } from '../../web/kinds';

export type Op = 'same' | 'removed' | 'added' | 'replaced';
export type Side = { step: number; tokens: number; run: string };
export type DiffRow = {
  op: Op;
  kind: Kind;
  a: number[];
  b: number[];
  tokens_a: number;
  tokens_b: number;
  reason: string | null;
  revision: number | null;
  of?: 'a' | 'b'; // the side whose run has that revision
};
export type DiffJson = { a: Side; b: Side; rows: DiffRow[] };
export type Props = {
  diff_url: string;
  manifest_url: string;
  entry_url: string;
  previews_url: string;
  revision_url: string;
  replay_url: string;
  diff_page_url: string;
  list_url: string;
  a: number;
  b: number;
  run?: string;
  with?: string; // the run of b, where it is another
};

export const signs: Record<Op, [sign: string, name: string]> = {
  same: ['=', 'kept'],
  removed: ['−', 'removed'],
  added: ['+', 'added'],
  replaced: ['~', 'replaced'],
};

type Count = { op: Op; blocks: number; a: number; b: number };

/** Blocks and tokens per kind of change, for the line at the top. */
export function counts(rows: DiffRow[]): Count[] {
  return (Object.keys(signs) as Op[])
    .map((op) => {
      const those = rows.filter((row) => row.op === op);
      const sum = (value: (row: DiffRow) => number) =>
        those.reduce((all, row) => all + value(row), 0);
      return {
        op,
        blocks: sum((row) => Math.max(row.a.length, row.b.length)),
        a: sum((row) => row.tokens_a),
        b: sum((row) => row.tokens_b),
      };
    })
    .filter((count) => count.blocks > 0);
}

export type Numbered = { i: number; row: DiffRow; kinds: [Kind, number][] };

/** Neighbours that were all kept, or all removed by one revision, are one row, whatever their kinds:
    a compaction removes thousands of blocks, and is one change. */
export function collapsed(rows: DiffRow[]): Numbered[] {
  const made: Numbered[] = [];
  rows.forEach((row, i) => {
    const before = made.at(-1);
    const joins =
      before &&
      before.row.op === row.op &&
      (row.op === 'same' ||
        (row.op === 'removed' && before.row.revision === row.revision && before.row.of === row.of));
    if (!joins) {
      made.push({
        i,
        row: { ...row, a: [...row.a], b: [...row.b] },
        kinds: [[row.kind, row.tokens_a]],
      });
      return;
    }
    const into = before.row;
    into.a.push(...row.a);
    into.b.push(...row.b);
    into.tokens_a += row.tokens_a;
    into.tokens_b += row.tokens_b;
    const kind = before.kinds.find(([name]) => name === row.kind);
    if (kind) kind[1] += row.tokens_a;
    else before.kinds.push([row.kind, row.tokens_a]);
  });
  for (const one of made) one.kinds.sort((x, y) => y[1] - x[1]);
  return made;
}

/** A new block that replaced many. */
export const isSummary = (row: DiffRow): boolean =>
  row.kind === 'summary' && row.b.length === 1 && (row.op === 'added' || row.op === 'replaced');

/** Whether it is no more than one block for one. */
export const isSingle = (row: DiffRow): boolean => row.a.length <= 1 && row.b.length <= 1;
export const isNew = (row: DiffRow): boolean => row.op === 'added' || isSummary(row);
/** A single block is called by its first line: the one that was there, so that it can be recognized. */
export const blockOf = (row: DiffRow): number => (isNew(row) ? row.b[0] : row.a[0]);

/** What a summary replaced: all that its revision took out. Between steps that are far apart a later
    summary may replace what an earlier one took out: then it is everything that is gone. */
export function takenFor(rows: DiffRow[], summary: DiffRow): number[] {
  const removed = rows.filter((row) => row.op === 'removed');
  const own = removed.filter((row) => row.revision === summary.revision);
  const taken = [
    ...summary.a,
    ...(own.length || summary.a.length ? own : removed).flatMap((row) => row.a),
  ];
  return [...new Set(taken)].sort((x, y) => x - y);
}

const pairsAtOnce = 3;

/** What a reader came for is open: summaries, and replaced pairs while they are few. */
export function openAtFirst(rows: Numbered[]): number[] {
  const pairs = rows.filter(({ row }) => row.op === 'replaced' && !isSummary(row));
  return rows
    .filter(({ row }) => isSummary(row) || (row.op === 'replaced' && pairs.length <= pairsAtOnce))
    .map(({ i }) => i);
}
