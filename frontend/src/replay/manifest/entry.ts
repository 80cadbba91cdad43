/* One block in full, as the entry endpoint gives it. */
import { Flag, type Entries } from './manifest';
import { kindNames } from '../../web/kinds';

export type Version = {
  label: string;
  origin: string;
  revision: number | null;
  from: number;
  to: number | null;
  tokens: number;
  reason: string;
  strategy: string | null;
  policy: string | null;
  text: string;
  standing: boolean;
};
export type EntryDetail = {
  i: number;
  message: number | null;
  index: number | null;
  role: string;
  kind: string;
  type: string;
  tool: string | null;
  file: { path: string; start: number | null; end: number | null; action: string } | null;
  at: number | null;
  step: number | null;
  tokens: number;
  chars: number;
  sha: string;
  text: string;
  truncated: boolean;
  /** Whether it, or a version of it, is shown with masks that the store does not have. */
  masked: boolean;
  json: string;
  /** How the tokens were arrived at: o200k tokens times the session's ratio (permille). */
  counts: {
    basis: 'exact' | 'calibrated' | 'estimated';
    o200k: number;
    ratio: number;
  };
  in_context: { steps: number; tokens: number; cost_microusd: number | null };
  versions: Version[];
};

/** Which entry a version of the selected one is, or -1: originals go by their message, what an edit put in by
    its revision. */
export function entryOf(
  entries: Entries,
  selected: number,
  version: Pick<Version, 'revision' | 'from'>,
): number {
  const sameBlock = (i: number) =>
    entries.message[i] === entries.message[selected] &&
    entries.index[i] === entries.index[selected];
  let summary = -1;
  for (let i = 0; i < entries.count; i++) {
    if (entries.from[i] !== version.from) continue;
    if (version.revision === null) {
      if (sameBlock(i) && !(entries.flags[i] & Flag.replacement)) return i;
    } else if (entries.edit[i] === version.revision && sameBlock(i)) return i;
    // One summary replaces all the blocks of its revision; in a log it is a message like others.
    else if (
      kindNames[entries.kind[i]] === 'summary' &&
      (entries.edit[i] || version.revision) === version.revision
    )
      summary = i;
  }
  return summary;
}
