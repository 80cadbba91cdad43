/* By whose cache rules each model's calls are priced, in words: what the estimate of a cost rests on. */
import * as format from '../web/format';
import type { TTL } from './policy';
import type { Sizes } from './sizes';

const LIVES: Record<Exclude<TTL, 'recorded'>, string> = {
  '5m': 'entries live 5 minutes',
  '1h': 'entries live an hour',
  mixed: 'tools and system prompt live an hour, the rest 5 minutes',
};

const hours = (seconds: number): string =>
  seconds % 3600
    ? `${Math.round(seconds / 60)} minutes`
    : seconds === 3600
      ? 'an hour'
      : `${seconds / 3600} hours`;

function rulesOf(sizes: Sizes, ttl: TTL): string {
  const kept = sizes.kept[0];
  switch (sizes.rules) {
    case 'anthropic':
      return ttl === 'recorded'
        ? `${sizes.cache}; ${LIVES[sizes.ttl]}, as recorded`
        : `${sizes.cache}; ${LIVES[ttl]}, as the draft asks`;
    case 'none':
      return 'no cache: every token is uncached';
    case 'unknown':
      return 'neither cache rules nor a price are known: it counts for tokens only';
    default:
      return `${sizes.cache}; entries live ${hours(kept.ttl)} without use`;
  }
}

/** One line for each model of the sessions:
    "claude-x, 3 sessions: Anthropic's rules; entries live an hour, as the draft asks". */
export function rulesInWords(all: readonly Sizes[], ttl: TTL): string[] {
  const found = new Map<string, number>();
  for (const sizes of all) {
    const priced =
      sizes.price || sizes.rules === 'unknown' ? '' : '; no price is known, so it has no cost';
    const line = `${rulesOf(sizes, ttl)}${priced}\n${sizes.model || 'no model named'}`;
    found.set(line, (found.get(line) ?? 0) + 1);
  }
  return [...found].map(([line, count]) => {
    const [rules, model] = line.split('\n');
    return `${model}, ${format.plural(count, 'session')}: ${rules}.`;
  });
}
