/* What the command palette offers for what was typed. */
import type { Shortcut } from './registry';

export type Command = {
  does: string;
  about?: string; // further words by which it is found
  note?: string; // shown after what it does
  keys: string;
  run(): void;
};

/** A session, as the API lists it. */
export type Listed = {
  id: string;
  external_id: string;
  title: string;
  agent: string;
  running: boolean;
  url: string;
};

const MOST = 12;
const MOST_SESSIONS = 5;

/** What the search page takes for a step: keep in sync with sessions/views/search/step_asked.py. */
const STEP = /(?:^|\s)(?:step|#)\s?(\d{1,7})(?=\s|$)/i;

/** What the search says it does with these words. */
function searchFor(text: string): string {
  const step = Number(STEP.exec(text)?.[1] ?? 0);
  if (!step) return `Search every session for “${text}”`;
  return `Step ${step} of the longest sessions, and search for “${text}”`;
}

/** The sessions whose title or id holds what was typed, running ones first. */
export function sessionCommands(listed: readonly Listed[], typed: string): Command[] {
  const text = typed.trim().toLowerCase();
  return listed
    .filter((one) => [one.title, one.external_id].some((name) => name.toLowerCase().includes(text)))
    .sort((a, b) => Number(b.running) - Number(a.running))
    .slice(0, MOST_SESSIONS)
    .map((one) => ({
      does: one.title || one.external_id,
      note: [one.running && 'running', one.agent, one.title && shortId(one.external_id)]
        .filter(Boolean)
        .join(' · '),
      keys: '',
      run: () => location.assign(one.url),
    }));
}

/** Both ends of an id: keep in sync with SessionRow.short_id. */
const shortId = (id: string) => (id.length <= 18 ? id : `${id.slice(0, 8)}…${id.slice(-8)}`);

/** Shortcuts and policies whose words hold every typed word, those found by name first; then
sessions, then the search. */
export function commandsFor(
  registry: readonly Shortcut[],
  typed: string,
  search: ((words: string) => void) | null,
  policies: readonly Command[] = [],
  sessions: readonly Command[] = [],
): Command[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const [own, others] = [true, false].map((isOwn) =>
    registry.filter(({ section }) => (section !== 'Everywhere') === isOwn),
  );
  const shortcuts = [...own!, ...others!].map((one) => ({
    does: one.does,
    about: one.about ?? '',
    keys: one.keys[0] ?? '',
    run: () => one.run(new KeyboardEvent('keydown')),
  }));
  const all: Command[] = [...shortcuts, ...(words.length ? policies : [])];
  const holds = (text: string) => words.every((word) => text.toLowerCase().includes(word));
  const named = all.filter(({ does }) => holds(does));
  const related = all.filter(({ does, about }) => !holds(does) && holds(`${does} ${about ?? ''}`));
  const found = [...named, ...related];
  const text = typed.trim();
  const offers: Command[] =
    text && search ? [{ does: searchFor(text), keys: '', run: () => search(text) }] : [];
  return [...found.slice(0, MOST), ...sessions, ...offers];
}
