/* Which sessions a draft is tried on: as the address, the API and a sentence say it. */

export type Choice = {
  by: 'query' | 'sample' | 'hand';
  q?: string;
  agent?: string;
  model?: string;
  source?: string;
  flags?: string[];
  limit?: number;
  n?: number;
  seed?: number;
  min_steps?: number;
  ids?: string[];
};

const filters = ['q', 'agent', 'model', 'source'] as const;
const fields = {
  query: [...filters, 'flags', 'min_steps', 'limit'],
  sample: [...filters, 'flags', 'n', 'seed', 'min_steps'],
  hand: ['ids'],
} as const;

/** Only what belongs to the way of choosing, and nothing empty. */
export function wanted(choice: Choice): Choice {
  const kept: Record<string, unknown> = { by: choice.by };
  for (const name of fields[choice.by]) {
    const value = choice[name];
    if (value !== undefined && value !== '' && !(Array.isArray(value) && !value.length))
      kept[name] = value;
  }
  return kept as Choice;
}

export function toQuery(choice: Choice): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(wanted(choice)))
    for (const one of Array.isArray(value) ? value : [value]) query.append(name, String(one));
  return query;
}

/** The choice that an address makes, or null where it makes none. */
export function fromQuery(query: URLSearchParams): Choice | null {
  const by = query.get('by');
  if (by !== 'query' && by !== 'sample' && by !== 'hand') return null;
  const read: Record<string, unknown> = { by };
  for (const name of fields[by]) {
    if (!query.has(name)) continue;
    if (name === 'flags' || name === 'ids') read[name] = query.getAll(name);
    else if (filters.includes(name as never)) read[name] = query.get(name);
    else if (/^\d{1,9}$/.test(query.get(name)!)) read[name] = Number(query.get(name));
  }
  return wanted(read as Choice);
}

/** "the 20 newest that match “timeout”, agent codex", without how many there are. */
export function described(choice: Choice): string {
  if (choice.by === 'hand') return `${choice.ids?.length ?? 0} chosen by hand`;
  const narrowed = [
    choice.q && `“${choice.q}”`,
    choice.agent,
    choice.model,
    choice.source,
    ...(choice.flags ?? []),
  ]
    .filter(Boolean)
    .join(', ');
  const least = (choice.min_steps ?? 1) > 1 ? ` with ${choice.min_steps} steps or more` : '';
  if (choice.by === 'query')
    return (narrowed ? `the newest that match ${narrowed}` : 'the newest') + least;
  return `a sample (seed ${choice.seed ?? 0})${narrowed ? ` of those that match ${narrowed}` : ''}${least}`;
}
