/* Session by session: how much each changed, and in which order they stand. */
import type { Reference, SessionLine } from './body';
import { ratio } from './figures';

export type Sort = 'order' | 'cost' | 'tokens' | 'place';

type Role = Reference['role'];
export const costChange = (line: SessionLine, role: Role): number | null =>
  ratio(line.draft?.charged_microusd, line[role]?.charged_microusd);
export const tokensChange = (line: SessionLine, role: Role): number | null =>
  ratio(line.draft?.tokens_sent, line[role]?.tokens_sent);
/** Null where one of them needed nothing. */
export function placeChange(line: SessionLine, role: Role): number | null {
  const [now, then] = [line.draft, line[role]];
  return now?.needs && then?.needs ? (now.in_context ?? 0) - (then.in_context ?? 0) : null;
}

/** Worst first; unknown last. */
export function sorted(lines: readonly SessionLine[], by: Sort, role: Role): SessionLine[] {
  if (by === 'order') return [...lines];
  const change = { cost: costChange, tokens: tokensChange, place: placeChange }[by];
  const harm = (line: SessionLine) =>
    (change(line, role) ?? -Infinity) * (by === 'place' && change(line, role) !== null ? -1 : 1);
  return [...lines].sort((a, b) => harm(b) - harm(a));
}

/** Sessions that lose more of what they needed under the draft than under the active version. */
export const losers = (lines: readonly SessionLine[]): number =>
  lines.filter((line) => (line.draft?.lost ?? 0) > (line.active?.lost ?? 0)).length;
