/* Marks of what happened in a session, from the table that the templates use too. Its order is that of
   importance: where marks fall together on a timeline, the first one shows. */
import table from '../../../sessions/marks.json';
import { exact } from './format';

export type MarkKind = keyof typeof table;
/** `plural` follows a number, `means` a colon. */
export type Mark = { symbol: string; name: string; plural: string; means: string };

export const marks: Record<MarkKind, Mark> = table;

/** The mark of a kind; a plain one for kinds that came after this page was made. */
export const markOf = (kind: string): Mark => marks[kind as MarkKind] ?? marks.edit;

const kinds = Object.keys(table);
/** Its place in the table. */
export const rankOf = (kind: string): number => {
  const place = kinds.indexOf(kind);
  return place < 0 ? kinds.indexOf('edit') : place;
};

/** "3 retries", "1 retry". */
export const counted = (kind: string, count: number): string =>
  count === 1 ? `1 ${markOf(kind).name.toLowerCase()}` : `${exact(count)} ${markOf(kind).plural}`;

/** "Retry: the agent tried a failed step again". */
export const said = (kind: string): string => `${markOf(kind).name}: ${markOf(kind).means}`;
