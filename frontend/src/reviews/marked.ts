/* Facts in texts: where they stand, so that both texts show them. */
import type { Fact } from './review';

export type Piece = { text: string; key: string };
type Needle = { text: string; key: string };

const quoted = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
const inWord = /[\p{L}\p{N}_]/u;

/** By what a text may name a fact: its words, and for a file also its name without folders. */
export function needles(facts: Fact[]): Needle[] {
  const found = new Map<string, string>();
  const add = (text: string, key: string) =>
    text.length > 1 && !found.has(text.toLowerCase()) && found.set(text.toLowerCase(), key);
  for (const one of facts) add(one.fact, one.key);
  for (const one of facts) {
    const name = one.kind === 'path' ? (one.fact.split(/[\\/]/).at(-1) ?? '') : '';
    if (name.includes('.')) add(name, one.key);
  }
  return [...found].map(([text, key]) => ({ text, key }));
}

/** The text in pieces, with the key of the fact that a piece is, or none. */
export function pieces(text: string, all: Needle[]): Piece[] {
  const lower = text.toLowerCase();
  const here = all
    .filter((one) => lower.includes(one.text))
    .sort((a, b) => b.text.length - a.text.length);
  if (!here.length) return [{ text, key: '' }];
  const keys = new Map(here.map((one) => [one.text, one.key]));
  const alone = (needle: string) => {
    const before = inWord.test(needle[0]!) ? '(?<![\\p{L}\\p{N}_])' : '';
    const after = inWord.test(needle.at(-1)!) ? '(?![\\p{L}\\p{N}_])' : '';
    return before + quoted(needle) + after;
  };
  const made: Piece[] = [];
  let at = 0;
  for (const match of text.matchAll(
    new RegExp(here.map((one) => alone(one.text)).join('|'), 'giu'),
  )) {
    const key = keys.get(match[0].toLowerCase());
    if (!key) continue;
    if (match.index > at) made.push({ text: text.slice(at, match.index), key: '' });
    made.push({ text: match[0], key });
    at = match.index + match[0].length;
  }
  if (at < text.length || !made.length) made.push({ text: text.slice(at), key: '' });
  return made;
}

const around = 110;

/** The lines that name facts, each cut to what is around the first of them. */
export function excerpts(text: string, all: Needle[], most = 8): string[] {
  const found: string[] = [];
  const lower = text.toLowerCase();
  const here = all.filter((one) => lower.includes(one.text));
  for (const line of here.length ? text.split('\n') : []) {
    const parts = pieces(line, here);
    if (!parts.some((part) => part.key)) continue;
    const at = parts[0]!.key ? 0 : parts[0]!.text.length;
    const [start, end] = [Math.max(0, at - around), Math.min(line.length, at + 2 * around)];
    found.push(
      `${start ? '… ' : ''}${line.slice(start, end).trim()}${end < line.length ? ' …' : ''}`,
    );
    if (found.length === most) break;
  }
  return found;
}

const firstLines = 14;
const firstChars = 1200;

/** As much of a text as shows at first. */
export function beginning(text: string): string {
  const lines = text.slice(0, firstChars).split('\n').slice(0, firstLines).join('\n');
  return lines.length < text.length ? lines.trimEnd() : text;
}
