/* Characters that do not show, or that reorder what does, are shown by name: a diff must not hide them. */

const names: Record<number, string> = {
  0x00: 'NUL',
  0x08: 'BS',
  0x0c: 'FF',
  0x0d: 'CR',
  0x1b: 'ESC',
  0x7f: 'DEL',
  0xa0: 'NBSP',
  0xad: 'SHY',
  0x61c: 'ALM',
  0x200b: 'ZWSP',
  0x200c: 'ZWNJ',
  0x200d: 'ZWJ',
  0x200e: 'LRM',
  0x200f: 'RLM',
  0x2028: 'LS',
  0x2029: 'PS',
  0x202a: 'LRE',
  0x202b: 'RLE',
  0x202c: 'PDF',
  0x202d: 'LRO',
  0x202e: 'RLO',
  0x2060: 'WJ',
  0x2066: 'LRI',
  0x2067: 'RLI',
  0x2068: 'FSI',
  0x2069: 'PDI',
  0xfeff: 'BOM',
};
// eslint-disable-next-line no-control-regex
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/u;
const spacing = /[\u00a0\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/u;
const halfPairs = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/u;
const tags = /[\u{e0000}-\u{e007f}]/u;
const hidden = new RegExp(
  [controls, spacing, halfPairs, tags].map((part) => part.source).join('|'),
  'gu',
);

export type Shown = { text: string; chip: boolean };

export function withChips(text: string): Shown[] {
  const shown: Shown[] = [];
  let at = 0;
  for (const match of text.matchAll(hidden)) {
    if (match.index > at) shown.push({ text: text.slice(at, match.index), chip: false });
    const code = match[0].codePointAt(0)!;
    shown.push({
      text: names[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`,
      chip: true,
    });
    at = match.index + match[0].length;
  }
  if (at < text.length || !shown.length) shown.push({ text: text.slice(at), chip: false });
  return shown;
}
