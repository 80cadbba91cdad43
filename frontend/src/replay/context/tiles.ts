/* The treemap's tiles: the context of a step by kind, then tool or file, then block. */
import type { Entries } from '../manifest/manifest';
import { kindNames, kindTitles, type Kind } from '../../web/kinds';
import { squarify, type Box } from './treemap';

export type Tile = Box & { kind: Kind; tokens: number; label: string } & (
    { form: 'kind' | 'source' } | { form: 'block'; entry: number; blocks: number }
  );

const nameHeight = 18; // px
const most = 700; // blocks drawn; smaller ones share a tile
const smallest = 36; // px² of a block drawn

export type Sources = { names: string[]; of: number[] };

type Group = { label: string; tokens: number; entries: number[] };

/** Groups in falling order of tokens. */
function grouped(entries: Entries, of: Iterable<number>, label: (i: number) => string): Group[] {
  const groups = new Map<string, Group>();
  for (const i of of) {
    const name = label(i);
    const group = groups.get(name) ?? { label: name, tokens: 0, entries: [] };
    group.tokens += entries.shown[i];
    group.entries.push(i);
    groups.set(name, group);
  }
  return [...groups.values()].filter((one) => one.tokens).sort((a, b) => b.tokens - a.tokens);
}

/** The name of a file without its folders, if that says enough. */
const shortOf = (source: string): string => source.slice(source.lastIndexOf('/') + 1) || source;

export function tilesOf(
  entries: Entries,
  rows: Int32Array,
  sources: Sources | null,
  width: number,
  height: number,
): Tile[] {
  const tiles: Tile[] = [];
  const kinds = grouped(entries, rows, (i) => kindNames[entries.kind[i]]);
  const total = kinds.reduce((sum, one) => sum + one.tokens, 0);
  const sorted = Array.from(rows, (i) => entries.shown[i]).sort((a, b) => b - a);
  const least = Math.max(sorted[most] ?? 0, (smallest * total) / Math.max(1, width * height));
  const whole = { x: 0, y: 0, width, height };
  const boxes = squarify(
    kinds.map((one) => one.tokens),
    whole,
  );
  kinds.forEach((group, k) => {
    const kind = group.label as Kind;
    const title = kindTitles[kind][1];
    tiles.push({ form: 'kind', kind, tokens: group.tokens, label: title, ...boxes[k] });
    const parts = grouped(entries, group.entries, (i) => sources?.names[sources.of[i]] ?? '');
    const inner = inside(boxes[k]);
    squarify(
      parts.map((part) => part.tokens),
      inner,
    ).forEach((box, p) => {
      const part = parts[p];
      const label = shortOf(part.label);
      if (label) tiles.push({ form: 'source', kind, tokens: part.tokens, label, ...box });
      tiles.push(...blocks(entries, part, kind, label ? inside(box) : box, least));
    });
  });
  return tiles;
}

/** Room for the blocks below a name, where there is enough. */
const inside = (box: Box): Box =>
  box.height > 2.5 * nameHeight && box.width > 48
    ? { ...box, y: box.y + nameHeight, height: box.height - nameHeight }
    : box;

function blocks(entries: Entries, part: Group, kind: Kind, box: Box, least: number): Tile[] {
  const large = part.entries.filter((i) => entries.shown[i] >= least);
  large.sort((a, b) => entries.shown[b] - entries.shown[a]);
  const drawn = large.map((i) => ({ entry: i, tokens: entries.shown[i], blocks: 1 }));
  const rest = part.entries.filter((i) => entries.shown[i] < least && entries.shown[i]);
  if (rest.length) {
    const tokens = rest.reduce((sum, i) => sum + entries.shown[i], 0);
    drawn.push({ entry: rest[0], tokens, blocks: rest.length });
    drawn.sort((a, b) => b.tokens - a.tokens);
  }
  return squarify(
    drawn.map((one) => one.tokens),
    box,
  ).map((at, n) => ({
    form: 'block',
    kind,
    label: part.label,
    ...drawn[n],
    ...at,
  }));
}
