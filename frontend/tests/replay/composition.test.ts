import { describe, expect, it } from 'vitest';
import { cacheStates, Cached } from '../../src/replay/manifest/cache';
import {
  compose,
  findRow,
  kindCount,
  kindTokens,
  rowsAt,
} from '../../src/replay/manifest/composition';
import { ledgerAt, totals } from '../../src/replay/manifest/ledger';
import { decode, shownTokens } from '../../src/replay/manifest/manifest';
import { manifestOf, random } from './manifests';

describe('composition', () => {
  it('is, at every step, the sum of the rows that stand there', () => {
    const manifest = decode(random(400, 60));
    const composition = compose(manifest.entries, manifest.last);
    for (let step = 1; step <= manifest.last; step++) {
      const sums = new Float64Array(kindCount);
      const rows = rowsAt(manifest.entries, step);
      for (const i of rows) sums[manifest.entries.kind[i]] += manifest.entries.shown[i];
      expect([...kindTokens(composition, step)]).toEqual([...sums]);
      expect(composition.blocks[step]).toBe(rows.length);
    }
  });

  it('rounds shown tokens half up, as the server does', () => {
    expect([
      shownTokens(1, 1280),
      shownTokens(100, 1280),
      shownTokens(3, 1500),
      shownTokens(7, 1000),
    ]).toEqual([1, 128, 5, 7]);
  });

  it('keeps ghosts in their place and finds rows', () => {
    const { entries } = decode(
      manifestOf(
        [
          [1, 0],
          [1, 3],
          [3, 0],
          [4, 0],
        ],
        5,
      ),
    );
    expect([...rowsAt(entries, 3)]).toEqual([0, 2]);
    expect([...rowsAt(entries, 3, true)]).toEqual([0, 1, 2]);
    expect([...rowsAt(entries, 3, true, (i) => i !== 0)]).toEqual([1, 2]);
    expect([
      findRow(rowsAt(entries, 4), 2),
      findRow(rowsAt(entries, 4), 3),
      findRow(rowsAt(entries, 4), 1),
    ]).toEqual([1, 2, -1]);
  });

  it('counts the requests beside a response in the share read from the cache, as the list does', () => {
    const manifest = decode(manifestOf([], 2));
    const { steps } = manifest;
    [steps.read, steps.write, steps.uncached] = [
      [90, 90],
      [10, 10],
      [0, 0],
    ];
    expect(totals(manifest, compose(manifest.entries, 2)).readShare).toBe(0.9);
    [steps.beside, steps.beside_read] = [
      [200, 0],
      [20, 0],
    ];
    const composition = compose(manifest.entries, 2);
    expect(totals(manifest, composition).readShare).toBe(0.5);
    expect(ledgerAt(manifest, composition, 1).beside).toBe(200);
  });

  it('survives a session without steps', () => {
    const manifest = decode(manifestOf([], 0));
    expect(manifest.last).toBe(1);
    expect(ledgerAt(manifest, compose(manifest.entries, 1), 1)).toMatchObject({
      next: true,
      size: 0,
      change: null,
    });
  });
});

describe('ledger', () => {
  const json = manifestOf(
    [
      [1, 0],
      [2, 0],
    ],
    2,
  );
  json.session.hidden = 40;
  Object.assign(json.steps, {
    prompt: [150, null],
    read: [0, null],
    write: [140, null],
    uncached: [5, null],
    cost: [700, null],
  });
  const manifest = decode(json);
  const composition = compose(manifest.entries, manifest.last);

  it('adds up: visible + hidden + unexplained is the prompt, and a gap is said', () => {
    const ledger = ledgerAt(manifest, composition, 1);
    expect(ledger.visible + ledger.hidden + ledger.unexplained).toBe(ledger.prompt);
    expect(ledger.gap).toBe(5);
  });

  it('says where it is not known which of two contexts was sent', () => {
    const unreported = (handed_out: boolean, managed?: number[]) =>
      [1, 2, 3].map((step) => {
        const given = { ...manifest, session: { ...manifest.session, handed_out } };
        return ledgerAt({ ...given, steps: { ...manifest.steps, managed } }, composition, step)
          .unreported;
      });
    expect(unreported(true, [1, 0])).toEqual([false, true, false]);
    expect(unreported(true)).toEqual([true, true, false]);
    expect(unreported(false)).toEqual([false, false, false]);
  });

  it('falls back on our own count where nothing was reported', () => {
    expect(ledgerAt(manifest, composition, 2)).toMatchObject({
      prompt: null,
      size: 240,
      basis: 1,
      change: 100,
    });
  });

  it('headlines the peak, not the sum, and what was reported where anything was', () => {
    expect(totals(manifest, composition)).toMatchObject({
      peak: 150,
      peakStep: 1,
      peakCounted: 240,
      cost: 700,
      billed: 145,
    });
    const silent = decode(
      manifestOf(
        [
          [1, 0],
          [2, 0],
        ],
        2,
      ),
    );
    expect(totals(silent, composition)).toMatchObject({ peak: 200, peakStep: 2 });
  });

  it('has a peak that never falls while usage comes after the messages', () => {
    const peaks: number[] = [];
    for (const prompt of [
      [150, null, null],
      [150, 90, null],
      [150, 90, 160],
    ]) {
      const later = manifestOf(
        [
          [1, 0],
          [2, 0],
          [3, 0],
        ],
        3,
      );
      later.steps.prompt = prompt;
      const { peak } = totals(decode(later), compose(decode(later).entries, 4));
      peaks.push(peak);
    }
    expect(peaks).toEqual([150, 150, 160]);
  });

  it('compares reported with reported and counted with counted', () => {
    const mixed = manifestOf(
      [
        [1, 0],
        [2, 0],
        [3, 0],
      ],
      3,
    );
    mixed.steps.prompt = [150, 190, null];
    const changes = [1, 2, 3, 4].map(
      (step) => ledgerAt(decode(mixed), compose(decode(mixed).entries, 4), step).change,
    );
    expect(changes).toEqual([null, 40, 100, 0]);
  });

  it.each([
    [2, 0, 150, 250], // more was sent than we count: the next prompt has it too
    [2, 0, 80, 180], // and less
    [1, 2, 250, 150], // the row that left was not what we did not count
    [1, 2, 80, 100], // but perhaps what we counted too much
  ])('starts the next call from what was reported of the last', (from, to, last, size) => {
    const json = manifestOf(
      [
        [1, 0],
        [from, to],
      ],
      1,
    );
    json.steps.prompt = [last];
    const ledger = ledgerAt(decode(json), compose(decode(json).entries, 2), 2);
    expect(ledger).toMatchObject({ next: true, size });
    expect(ledger.visible + ledger.unexplained).toBe(size);
  });
});

describe('cache states', () => {
  const { entries } = decode(
    manifestOf(
      [
        [1, 0],
        [1, 0],
        [1, 0],
        [1, 0],
      ],
      1,
    ),
  );
  const rows = rowsAt(entries, 1);

  it('lays read, write and uncached over the rows in order, after what is hidden', () => {
    const { states, divergent } = cacheStates(entries, rows, 1, 100, 400, {
      prompt: 500,
      read: 300,
      write: 100,
      uncached: 100,
    });
    expect([...states]).toEqual([Cached.read, Cached.read, Cached.write, Cached.uncached]);
    expect(divergent).toBe(2);
  });

  it('scales when our count and the provider’s differ', () => {
    const { states } = cacheStates(entries, rows, 1, 0, 400, {
      prompt: 800,
      read: 400,
      write: 400,
      uncached: 0,
    });
    expect([...states]).toEqual([Cached.read, Cached.read, Cached.write, Cached.write]);
  });

  it('says nothing without usage', () => {
    expect([
      ...cacheStates(entries, rows, 1, 0, 400, {
        prompt: null,
        read: null,
        write: null,
        uncached: null,
      }).states,
    ]).toEqual([0, 0, 0, 0]);
  });
});
