/* Two texts, compared: by line first, and inside changed lines by word. jsdiff comes with this file
   only when a text is opened. */
import { diffArrays, diffWordsWithSpace } from 'diff';

export type Piece = { text: string; changed: boolean };
export type Line = {
  op: 'same' | 'removed' | 'added';
  a: number | null;
  b: number | null;
  pieces: Piece[];
};
export type Compared = { lines: Line[]; byWord: boolean; why: string };

const mostBytes = 262_144;
const mostChanges = 2_000;

const whole = (text: string): Piece[] => [{ text, changed: false }];

/** Splits a pair of lines into what both have and what one has. */
function words(before: string, after: string): [Piece[], Piece[]] {
  const left: Piece[] = [];
  const right: Piece[] = [];
  for (const part of diffWordsWithSpace(before, after)) {
    if (!part.added) left.push({ text: part.value, changed: Boolean(part.removed) });
    if (!part.removed) right.push({ text: part.value, changed: Boolean(part.added) });
  }
  // Two lines that share next to nothing read better as a whole removal and addition.
  const common = left
    .filter((piece) => !piece.changed)
    .reduce((sum, piece) => sum + piece.text.trim().length, 0);
  return common * 4 < Math.max(before.length, after.length)
    ? [whole(before), whole(after)]
    : [left, right];
}

/** Lines and words that differ; lines are compared for at most so many ms. */
export function compareTexts(before: string, after: string, timeout = 800): Compared {
  const big = before.length + after.length > 2 * mostBytes;
  const parts = big ? [] : diffArrays(before.split('\n'), after.split('\n'), { timeout });
  if (big || !parts)
    return { lines: replacedWhole(before, after), byWord: false, why: 'too large to compare' };
  const changes = parts.reduce(
    (sum, part) => sum + (part.added || part.removed ? part.value.length : 0),
    0,
  );
  const isWordable =
    before.length <= mostBytes && after.length <= mostBytes && changes <= mostChanges;
  const lines: Line[] = [];
  let [a, b] = [0, 0];
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i];
    const next = parts[i + 1];
    if (!part.added && !part.removed) {
      for (const text of part.value)
        lines.push({ op: 'same', a: ++a, b: ++b, pieces: whole(text) });
    } else if (part.removed && next?.added) {
      const paired = part.value.map((text, row) =>
        isWordable && row < next.value.length ? words(text, next.value[row]) : null,
      );
      part.value.forEach((text, row) =>
        lines.push({ op: 'removed', a: ++a, b: null, pieces: paired[row]?.[0] ?? whole(text) }),
      );
      next.value.forEach((text, row) =>
        lines.push({ op: 'added', a: null, b: ++b, pieces: paired[row]?.[1] ?? whole(text) }),
      );
      i++;
    } else if (part.removed)
      for (const text of part.value)
        lines.push({ op: 'removed', a: ++a, b: null, pieces: whole(text) });
    else
      for (const text of part.value)
        lines.push({ op: 'added', a: null, b: ++b, pieces: whole(text) });
  }
  return { lines, byWord: isWordable, why: isWordable ? '' : 'too large to compare word by word' };
}

function replacedWhole(before: string, after: string): Line[] {
  const head = (text: string) => text.slice(0, 20_000).split('\n');
  return [
    ...head(before).map((text, i): Line => ({
      op: 'removed',
      a: i + 1,
      b: null,
      pieces: whole(text),
    })),
    ...head(after).map((text, i): Line => ({
      op: 'added',
      a: null,
      b: i + 1,
      pieces: whole(text),
    })),
  ];
}

export type Fold = { fold: true; count: number; at: number };

/** Unchanged stretches shrink to a few lines around changes; `open` has the ones unfolded by hand. */
export function folded(lines: Line[], around: number, open: ReadonlySet<number>): (Line | Fold)[] {
  const near = new Uint8Array(lines.length);
  lines.forEach((line, i) => {
    if (line.op !== 'same')
      near.fill(1, Math.max(0, i - around), Math.min(lines.length, i + around + 1));
  });
  const shown: (Line | Fold)[] = [];
  for (let i = 0; i < lines.length;) {
    let end = i;
    while (end < lines.length && !near[end]) end++;
    if (end - i > 3 && !open.has(i)) shown.push({ fold: true, count: end - i, at: i });
    else shown.push(...lines.slice(i, end));
    if (end < lines.length) shown.push(lines[end]);
    i = end + 1;
  }
  return shown;
}

/** Side by side: a removed line stands beside the added one that took its place. */
export function paired(lines: (Line | Fold)[]): (Fold | [Line | null, Line | null])[] {
  const rows: (Fold | [Line | null, Line | null])[] = [];
  for (let i = 0; i < lines.length;) {
    const line = lines[i];
    if ('fold' in line) rows.push(line);
    else if (line.op === 'same') rows.push([line, line]);
    else {
      const left: Line[] = [];
      const right: Line[] = [];
      for (; i < lines.length; i++) {
        const next = lines[i];
        if ('fold' in next || next.op === 'same' || (next.op === 'removed' && right.length)) break;
        (next.op === 'removed' ? left : right).push(next);
      }
      for (let row = 0; row < Math.max(left.length, right.length); row++)
        rows.push([left[row] ?? null, right[row] ?? null]);
      continue;
    }
    i++;
  }
  return rows;
}
