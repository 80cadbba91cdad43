/* Small manifests for the tests. */
import { kindNames } from '../../src/web/kinds';
import type { ManifestJson } from '../../src/replay/manifest/manifest';

/** One entry of 100 tokens per interval. */
export function manifestOf(intervals: [from: number, to: number][], steps: number): ManifestJson {
  const each = <T>(value: (i: number) => T): T[] => intervals.map((_, i) => value(i));
  const none = () => Array.from({ length: steps }, () => null);
  return {
    v: 1,
    session: {
      id: 's',
      title: 't',
      agent: 'a',
      model: 'm',
      window: 1000,
      window_assumed: false,
      ratio: 1000,
      basis: 'calibrated',
      steps,
      hidden: 0,
      parent: null,
      children: [],
      version: 1,
      live: false,
    },
    run: { id: 'recorded', origin: 'recorded', label: 'recorded', policy: null, summary: null },
    runs: [],
    lines: { trigger: null },
    entries: {
      from: intervals.map(([from]) => from),
      to: intervals.map(([, to]) => to),
      kind: each(() => 8),
      tokens: each(() => 100),
      message: each((i) => i),
      index: each(() => 0),
      flags: each(() => 0),
      edit: each(() => 0),
      closed: each(() => 0),
    },
    kinds: [...kindNames],
    steps: {
      at: none(),
      prompt: none(),
      uncached: none(),
      read: none(),
      write: none(),
      output: none(),
      cost: none(),
      basis: none(),
      turn: none(),
      cause: none(),
      model: none(),
    },
    causes: [],
    models: ['m'],
    events: [],
  };
}

export function random(entries: number, steps: number): ManifestJson {
  let seed = 42;
  const next = (below: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
  const json = manifestOf(
    Array.from({ length: entries }, () => {
      const from = 1 + next(steps);
      return [from, next(3) ? 0 : from + 1 + next(steps)] as [number, number];
    }),
    steps,
  );
  json.entries.kind = json.entries.kind.map(() => next(10));
  json.entries.tokens = json.entries.tokens.map(() => next(5000));
  json.session.ratio = 1280;
  return json;
}
