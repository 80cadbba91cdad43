import { describe, expect, it } from 'vitest';
import { sentence } from '../../src/replay/state/announcer.svelte';
import { linesOf, standing } from '../../src/replay/state/budget';
import { compose, type Composition } from '../../src/replay/manifest/composition';
import { merge, shifted, type DeltaJson } from '../../src/replay/manifest/delta';
import {
  decode,
  everOpen,
  type EntryColumns,
  type Manifest,
  type ManifestJson,
} from '../../src/replay/manifest/manifest';
import { manifestOf, random } from './manifests';

const names = [
  'from',
  'to',
  'kind',
  'tokens',
  'message',
  'index',
  'flags',
  'edit',
  'closed',
] as const;
const pick = (json: ManifestJson, rows: number[]): EntryColumns =>
  Object.fromEntries(
    names.map((name) => [name, rows.map((i) => json.entries[name][i])]),
  ) as EntryColumns;

/** What the server would send to a page that has `old`, whose newest state is `whole`. */
function deltaTo(
  whole: ManifestJson,
  knownRows: number[],
  knownTo: number[],
  knownSteps: number,
): DeltaJson {
  const fresh = whole.entries.from.map((_, i) => i).filter((i) => !knownRows.includes(i));
  const changed = knownRows.filter((i, n) => whole.entries.to[i] !== knownTo[n]);
  const { entries, kinds, ...rest } = whole;
  return {
    ...rest,
    delta: true,
    since: 'a',
    next: 'b',
    entries: { at: fresh, ...pick(whole, fresh) },
    changed: {
      at: changed,
      to: changed.map((i) => entries.to[i]),
      closed: changed.map((i) => entries.closed[i]),
    },
    from_step: knownSteps + 1,
    steps: Object.fromEntries(
      Object.entries(whole.steps).map(([name, column]) => [name, column.slice(knownSteps)]),
    ) as ManifestJson['steps'],
  };
}

function shown({ entries, last }: Manifest, { byKind, total, blocks }: Composition) {
  const columns = (
    ['from', 'to', 'kind', 'shown', 'message', 'index', 'flags', 'edit', 'closed'] as const
  ).map((name) => [...entries[name].subarray(0, entries.count)]);
  return {
    columns,
    last,
    byKind: [...byKind.subarray(0, (last + 1) * 10)],
    total: [...total.subarray(0, last + 1)],
    blocks: [...blocks.subarray(0, last + 1)],
  };
}

describe('a delta', () => {
  it('of messages, a stub in the middle and a closed interval, as the server describes it', () => {
    const json = manifestOf(
      [
        [1, 0],
        [1, 0],
        [2, 0],
      ],
      1,
    );
    json.next = 'a';
    const manifest = decode(json);
    const composition = compose(manifest.entries, manifest.last);
    const whole = manifestOf(
      [
        [1, 0],
        [1, 0],
        [2, 3],
        [3, 0],
        [3, 0],
        [3, 0],
      ],
      2,
    );
    whole.entries.edit[3] = 1;
    whole.entries.closed[2] = 1;
    const merged = merge(manifest, composition, deltaTo(whole, [0, 1, 2], [0, 0, 0], 1))!;
    expect(merged.inserted).toEqual([3, 4, 5]);
    expect(merged.manifest.next).toBe('b');
    expect(merge(manifest, composition, deltaTo(whole, [0, 1, 2], [0, 0, 0], 1))).toBeNull(); // not twice
    const right = decode(whole);
    expect(shown(merged.manifest, composition)).toEqual(
      shown(right, compose(right.entries, right.last)),
    );
  });

  it('however the parts fall, leaves what a fresh manifest gives', () => {
    let seed = 7;
    const next = (below: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
    for (let round = 0; round < 60; round++) {
      const steps = 2 + next(30);
      const whole = random(1 + next(80), steps);
      const known = next(steps + 1);
      const rows = whole.entries.from
        .map((_, i) => i)
        .filter((i) => whole.entries.from[i] <= known + 1 && next(4) > 0);
      const to = rows.map((i) =>
        whole.entries.to[i] > known + 1 || next(3) === 0 ? 0 : whole.entries.to[i],
      );
      const old: ManifestJson = {
        ...whole,
        next: 'a',
        session: { ...whole.session, steps: known },
        entries: { ...pick(whole, rows), to },
        steps: manifestOf([], known).steps,
      };
      const manifest = decode(structuredClone(old));
      const composition = compose(manifest.entries, manifest.last);
      const selected = rows.length ? next(rows.length) : -1;
      const merged = merge(
        manifest,
        composition,
        structuredClone(deltaTo(whole, rows, to, known)),
      )!;
      const right = decode(structuredClone(whole));
      expect(shown(merged.manifest, composition)).toEqual(
        shown(right, compose(right.entries, right.last)),
      );
      if (selected >= 0) expect(shifted(selected, merged.inserted)).toBe(rows[selected]);
      expect(merged.manifest.steps.at).toHaveLength(steps);
    }
  });

  it('is refused where it is of another state, another counting, or leaves a hole', () => {
    const json = manifestOf([[1, 0]], 1);
    json.next = 'a';
    const whole = manifestOf(
      [
        [1, 0],
        [2, 0],
      ],
      2,
    );
    const attempt = (change: Partial<DeltaJson>) => {
      const manifest = decode(structuredClone(json));
      return merge(manifest, compose(manifest.entries, manifest.last), {
        ...deltaTo(whole, [0], [0], 1),
        ...change,
      });
    };
    expect(attempt({})).not.toBeNull();
    expect(attempt({ since: 'z' })).toBeNull();
    expect(attempt({ from_step: 3 })).toBeNull();
    expect(attempt({ session: { ...whole.session, ratio: 1280 } })).toBeNull();
    expect(attempt({ entries: { ...deltaTo(whole, [0], [0], 1).entries, at: [5] } })).toBeNull();
  });

  it('grows the arrays now and then, not each time', () => {
    const json = manifestOf([[1, 0]], 1);
    json.next = 'a';
    let manifest = decode(json);
    const composition = compose(manifest.entries, manifest.last);
    const arrays = new Set();
    for (let n = 1; n <= 1000; n++) {
      const whole = manifestOf([[n, 0]], n);
      const { kinds, ...rest } = whole;
      manifest.next = 'a';
      manifest = merge(manifest, composition, {
        ...rest,
        delta: true,
        since: 'a',
        next: 'b',
        entries: { at: [n], ...whole.entries },
        changed: { at: [], to: [], closed: [] },
        from_step: n,
        steps: Object.fromEntries(
          Object.entries(whole.steps).map(([name, column]) => [name, column.slice(-1)]),
        ) as ManifestJson['steps'],
      })!.manifest;
      arrays.add(manifest.entries.from);
    }
    expect(manifest.entries.count).toBe(1001);
    expect(manifest.entries.to[1000]).toBe(everOpen);
    expect(arrays.size).toBeLessThan(15);
    expect(composition.total[1000]).toBe(100_100);
  });
});

it('sets the prompt of a call with a context of ours aside in the recorded run', () => {
  const json = manifestOf([[1, 0]], 2);
  Object.assign(json.steps, {
    prompt: [50, 60],
    read: [1, 2],
    write: [0, 0],
    uncached: [49, 58],
    output: [5, 6],
    managed: [1, 0],
  });
  const { steps } = decode(json);
  expect([steps.prompt, steps.read, steps.output]).toEqual([
    [null, 60],
    [null, 2],
    [5, 6],
  ]);
});

it('says in one sentence what came', () => {
  const { session } = manifestOf([], 12);
  const event = (revision: number) => ({
    step: 12,
    kind: 'offload' as const,
    revision,
    label: '',
    before: 57_510,
    after: 45_210,
    url: null,
  });
  const manifest = { session } as Manifest;
  expect(sentence(manifest, 45_210, [event(3)])).toBe(
    'Next call, step 13 · 45,210 tokens · r3 offload −12,300',
  );
  expect(sentence(manifest, 45_210, [1, 2, 3, 4, 5].map(event))).toBe(
    'Next call, step 13 · 45,210 tokens · 2 revisions · r3 offload −12,300 · r4 offload −12,300 · r5 offload −12,300',
  );
});

it('says how full a context is, and what the agent is advised', () => {
  const limits = {
    window: 200_000,
    room: 180_000,
    warn: 144_000,
    trigger: 162_000,
    target: 90_000,
    ladder: [
      [0.95, 1500],
      [0.9, 750],
      [0.85, 300],
      [0.8, 50],
    ] as [number, number][],
  };
  expect(linesOf({ ...limits, warn: 170_000 }).map(({ name }) => name)).toEqual([
    'target',
    'trigger',
    'warn',
    'room',
    'window',
  ]);
  expect(
    linesOf({ ...limits, room: 200_000, trigger: null, target: null }).map(({ name }) => name),
  ).toEqual(['warn', 'window']);
  const at = (used: number) => [standing(limits, used).state, standing(limits, used).delay_ms];
  expect([1000, 144_000, 155_000, 162_000, 172_000, 180_001].map(at)).toEqual([
    ['ok', 0],
    ['warn', 50],
    ['warn', 300],
    ['trigger', 750],
    ['trigger', 1500],
    ['over', 1500],
  ]);
});
