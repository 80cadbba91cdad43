/* "kind:result tool:bash >1k is:new text": every word narrows. */
import type { Entries } from '../manifest/manifest';
import { Flag } from '../manifest/manifest';
import { kindNames, kindTitles } from '../../web/kinds';

export type Filter = {
  kinds: Set<number> | null;
  tools: string[];
  words: string[];
  above: number;
  below: number;
  is: string[];
  message: number | null;
  needsPreviews: boolean;
  empty: boolean;
  unknown: string[];
};

const states = ['new', 'error', 'pinned', 'replaced', 'image', 'late'];

function kindOf(word: string): number {
  const wanted = word.toLowerCase();
  return kindNames.findIndex(
    (name) =>
      name === wanted ||
      `${name}s` === wanted ||
      kindTitles[name][0].toLowerCase() === wanted ||
      (name === 'file' && wanted === 'files'),
  );
}

function size(word: string): number {
  const match = /^(\d+(?:\.\d+)?)(k|m)?$/i.exec(word);
  return match
    ? Number(match[1]) * (match[2] ? (match[2].toLowerCase() === 'k' ? 1e3 : 1e6) : 1)
    : NaN;
}

export function parseFilter(query: string): Filter {
  const filter: Filter = {
    kinds: null,
    tools: [],
    words: [],
    above: -1,
    below: Infinity,
    is: [],
    message: null,
    needsPreviews: false,
    empty: true,
    unknown: [],
  };
  for (const word of query.match(/[^\s"]*"[^"]*"?|\S+/g) ?? []) {
    const [, key, rest] = /^(kind|tool|is):(.*)$/i.exec(word) ?? [null, '', ''];
    const value = rest.replaceAll('"', '').toLowerCase();
    if (key && !value) continue; // still being typed
    filter.empty = false;
    if (key === 'kind') {
      const kinds = value.split(',').map(kindOf);
      filter.kinds = new Set([...(filter.kinds ?? []), ...kinds.filter((kind) => kind >= 0)]);
      if (kinds.includes(-1)) filter.unknown.push(word);
    } else if (key === 'tool') filter.tools.push(value);
    else if (key === 'is') (states.includes(value) ? filter.is : filter.unknown).push(value);
    else if (/^#\d+$/.test(word)) filter.message = Number(word.slice(1));
    else if (word.startsWith('>') && size(word.slice(1)) >= 0) filter.above = size(word.slice(1));
    else if (word.startsWith('<') && size(word.slice(1)) >= 0) filter.below = size(word.slice(1));
    else filter.words.push(word.replaceAll('"', '').toLowerCase());
  }
  filter.needsPreviews = filter.tools.length > 0 || filter.words.length > 0;
  return filter;
}

/** Previews of tool blocks begin with the tool's name. */
export const toolOf = (preview: string): string =>
  preview.slice(0, (preview.indexOf(' ') + 1 || preview.length + 1) - 1);

export function matcher(
  filter: Filter,
  entries: Entries,
  step: number,
  preview: (i: number) => string | undefined,
  pins: ReadonlySet<number> = new Set(),
  found: ReadonlySet<string> = new Set(), // blocks whose whole text holds the words
): (i: number) => boolean {
  const flags: Record<string, (i: number) => boolean> = {
    new: (i) => entries.from[i] === step,
    error: (i) => (entries.flags[i] & Flag.error) > 0,
    pinned: (i) => pins.has(entries.message[i]),
    replaced: (i) => (entries.flags[i] & Flag.replacement) > 0,
    image: (i) => (entries.flags[i] & Flag.image) > 0,
    late: (i) => (entries.flags[i] & Flag.late) > 0,
  };
  return (i) => {
    if (filter.kinds && !filter.kinds.has(entries.kind[i])) return false;
    if (entries.shown[i] <= filter.above || entries.shown[i] >= filter.below) return false;
    if (filter.message !== null && entries.message[i] !== filter.message) return false;
    if (!filter.is.every((name) => flags[name]!(i))) return false;
    if (!filter.needsPreviews) return true;
    const isFound =
      !(entries.flags[i] & Flag.replacement) &&
      found.has(`${entries.message[i]}.${entries.index[i]}`);
    if (isFound && !filter.tools.length) return true;
    const line = preview(i)?.toLowerCase();
    if (line === undefined) return false; // not here yet: comes in when it is
    if (
      filter.tools.length &&
      !(
        entries.flags[i] & (Flag.toolUse | Flag.toolResult) &&
        filter.tools.some((tool) => toolOf(line).startsWith(tool))
      )
    )
      return false;
    return isFound || filter.words.every((word) => line.includes(word));
  };
}
