import { describe, expect, it } from 'vitest';
import { addressOf, findEntry, nameOfEntry, placeIn } from '../../src/replay/manifest/address';
import { compose } from '../../src/replay/manifest/composition';
import { ceiling } from '../../src/replay/timeline/drawing';
import { matcher, parseFilter, toolOf } from '../../src/replay/state/filter';
import { decode, type SessionEvent } from '../../src/replay/manifest/manifest';
import { entryOf } from '../../src/replay/manifest/entry';
import { stepsAxis, timeAxis } from '../../src/replay/state/axis';
import { barsOf } from '../../src/replay/timeline/lanes';
import { cluster, nextIn, shownOf } from '../../src/replay/timeline/marks';
import { eventAfter, eventBefore } from '../../src/replay/manifest/events';
import { manifestOf } from './manifests';

const event = (step: number, kind: SessionEvent['kind'] = 'error'): SessionEvent => ({
  step,
  kind,
  revision: null,
  label: '',
  before: null,
  after: null,
  url: null,
});

describe('timeline', () => {
  it('has each step under its own middle', () => {
    for (const last of [1, 2, 7, 601])
      for (let step = 1; step <= last; step++)
        expect(stepsAxis(last).stepAt(stepsAxis(last).middle(step))).toBe(step);
    expect([-0.2, 1.4].map((share) => stepsAxis(10).stepAt(share))).toEqual([1, 10]);
  });

  it('has one column per step without holes, or per pixel with the fullest step', () => {
    const few = stepsAxis(7).columns(100, () => 0);
    expect(few[0].from).toBe(0);
    expect(few.at(-1)!.to).toBe(100);
    few.slice(1).forEach((column, i) => expect(column.from).toBe(few[i].to));
    const many = stepsAxis(3001).columns(100, (step) => (step === 17 ? 9 : 0));
    expect(many).toHaveLength(100);
    expect(many[0].step).toBe(17);
    expect(
      stepsAxis(3001)
        .columns(100, () => 0)
        .at(-1)!.step,
    ).toBeLessThanOrEqual(3001);
  });

  it('has steps at their times and gaps at their true length', () => {
    const minute = 60_000;
    const axis = timeAxis([0, minute, null, 61 * minute, 62 * minute], 6)!;
    expect(axis.gaps).toHaveLength(1);
    const [gap] = axis.gaps;
    expect([gap.step, gap.ms / minute]).toEqual([4, 60]);
    for (const step of [1, 3, 4, 5, 6]) expect(axis.stepAt(axis.middle(step))).toBe(step);
    const columns = axis.columns(640, (step) => step);
    expect(columns.map((column) => column.step)).toEqual([1, 3, 4, 5, 6]);
    columns
      .slice(1)
      .forEach((column, i) => expect(column.from).toBeGreaterThanOrEqual(columns[i].to));
    expect(columns.at(-1)!.to).toBeLessThanOrEqual(640);
    expect(timeAxis([null, 5, 5, null], 5)).toBeNull();
  });

  it('draws sub-agents until they end, in lanes where they overlap', () => {
    const child = (id: string, step: number, ended: number | null) => ({
      ...{ id, title: id, step, steps: 1, tokens_peak: 1, cost_microusd: null },
      ended,
    });
    const children = [child('a', 1, 45), child('b', 2, null), child('c', 2, 99), child('d', 9, 99)];
    const at = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
    const { bars, rest } = barsOf(children, at, stepsAxis(10), 1000, 2);
    expect(bars.map((bar) => [bar.child.id, bar.x, bar.width, bar.lane])).toEqual([
      ['a', 50, 300, 0],
      ['b', 150, 6, 1],
      ['d', 850, 6, 0],
    ]);
    expect(bars.map((bar) => [bar.left, bar.room])).toEqual([
      [50, 300],
      [150, 132],
      [850, 132],
    ]);
    const [last] = barsOf([child('e', 10, null)], at, stepsAxis(10), 1000, 2).bars;
    expect([last.x, last.left, last.room], 'its name stays within the picture').toEqual([
      950, 868, 132,
    ]);
    expect(rest.map((one) => one.id)).toEqual(['c']);
  });

  it('is as high as the window, or as what was used', () => {
    const small = decode(manifestOf([[1, 0]], 2));
    const top = (scale: 'window' | 'used') =>
      ceiling(small, compose(small.entries, 3), null, scale);
    expect(top('window')).toBeCloseTo(1050);
    expect(top('used')).toBeCloseTo(105);
    small.session.window = 50; // it went beyond
    expect(top('window')).toBeCloseTo(105);
    // Beside a simulated run the recorded one is in the picture; beside a managed one it is what was never sent.
    const beside = (origin: 'simulated' | 'managed') =>
      ceiling(
        { ...small, run: { ...small.run, origin } },
        compose(small.entries, 3),
        Float64Array.of(4000),
        'used',
      );
    expect([beside('simulated'), beside('managed')].map(Math.round)).toEqual([4200, 105]);
  });

  it('shows several kinds as a number, never as one of them', () => {
    const shown = (...kinds: SessionEvent['kind'][]) =>
      shownOf(
        cluster(
          kinds.map((kind) => event(10, kind)),
          stepsAxis(601),
          1200,
        )[0],
      );
    expect(shown('compaction', 'compaction')).toEqual({ symbols: '◆', count: '2', mixed: false });
    expect(shown('compaction', 'break').symbols).toBe('◆✕');
    expect(shown('compaction', 'error', 'break')).toEqual({
      symbols: '✕',
      count: '3',
      mixed: true,
    });
    expect(shown('compaction', 'error', 'retry').symbols).toBe('');
  });

  it('clusters marks 24 pixels apart, led by what changed the context', () => {
    const marks = cluster([event(10), event(11, 'compaction'), event(500)], stepsAxis(601), 1200);
    expect(marks.map((mark) => [mark.kind, mark.events.length])).toEqual([
      ['compaction', 2],
      ['error', 1],
    ]);
    expect(nextIn(marks[0], 3).step, 'the most important first').toBe(11);
    expect(nextIn(marks[0], 10).step).toBe(11);
    expect(nextIn(marks[0], 11).step).toBe(10);
    expect([
      eventBefore(marks[0].events, 11),
      eventAfter(marks[0].events, 10),
      eventAfter(marks[0].events, 11),
    ]).toEqual([10, 11, null]);
  });
});

describe('address', () => {
  it('reads what it writes', () => {
    const place = {
      step: 61,
      run: 'abc',
      message: '412.1',
      view: 'treemap',
      axis: 'time',
    } as const;
    const address = addressOf('/sessions/x/', place);
    expect(address).toBe('/sessions/x/steps/61/?run=abc&m=412.1&view=treemap&x=time');
    expect(placeIn(`http://h${address}`)).toEqual(place);
    const usual = { step: null, run: '', message: '', view: 'table', axis: 'steps' } as const;
    expect(addressOf('/sessions/x/', usual)).toBe('/sessions/x/');
    expect(placeIn('http://h/sessions/x/?view=no')).toEqual(usual);
  });

  it('names blocks so that the version which stands is found', () => {
    const json = manifestOf(
      [
        [1, 3],
        [3, 0],
        [3, 0],
      ],
      5,
    );
    json.entries.message = [7, 7, 9];
    json.entries.flags = [0, 4, 4];
    json.entries.edit = [0, 2, 2];
    json.entries.kind = [8, 8, 4];
    const manifest = decode(json);
    expect([0, 1, 2].map((i) => nameOfEntry(manifest, i))).toEqual(['7', '7', 'r2.1']);
    expect([
      findEntry(manifest, '7', 2),
      findEntry(manifest, '7', 4),
      findEntry(manifest, 'r2.1', 4),
      findEntry(manifest, '8', 4),
    ]).toEqual([0, 1, 2, -1]);
  });
});

describe('filter', () => {
  const json = manifestOf(
    [
      [1, 0],
      [1, 0],
      [2, 0],
    ],
    3,
  );
  json.entries.kind = [5, 8, 8];
  json.entries.tokens = [10, 2000, 400];
  json.entries.flags = [0, 16, 17];
  const { entries } = decode(json);
  const lines = ['please fix it', 'bash pytest → 3 lines', 'read src/a.py → 9 lines'];
  const found = (query: string, step = 2) => {
    const match = matcher(parseFilter(query), entries, step, (i) => lines[i]);
    return [0, 1, 2].filter(match);
  };

  it('narrows by kind, tool, size, state, message and text', () => {
    expect(found('kind:result')).toEqual([1, 2]);
    expect(found('kind:us')).toEqual([0]);
    expect(found('tool:bash')).toEqual([1]);
    expect(found('>1k')).toEqual([1]);
    expect(found('kind:result <1k')).toEqual([2]);
    expect(found('is:new is:error')).toEqual([2]);
    expect(found('#1')).toEqual([1]);
    expect(found('"src/a.py → 9"')).toEqual([2]);
    expect(found('PYTEST')).toEqual([1]);
  });

  it('ignores what is still being typed and names what it does not know', () => {
    expect(parseFilter('kind:').empty).toBe(true);
    expect(parseFilter('kind:rseult').unknown).toEqual(['kind:rseult']);
    expect(toolOf('bash pytest')).toBe('bash');
    expect(toolOf('bash')).toBe('bash');
  });
});

describe('versions', () => {
  it('finds the entry of an original, of its stub, and of the summary that stands for it', () => {
    const json = manifestOf(
      [
        [1, 3],
        [3, 5],
        [1, 5],
        [5, 0],
      ],
      6,
    );
    json.entries.message = [7, 7, 8, 9];
    json.entries.edit = [0, 1, 0, 0]; // the summary is a message of the log
    json.entries.flags = [0, 4, 0, 0];
    json.entries.kind = [8, 8, 8, 4];
    const { entries } = decode(json);
    for (const selected of [0, 1]) {
      expect(entryOf(entries, selected, { revision: null, from: 1 })).toBe(0);
      expect(entryOf(entries, selected, { revision: 1, from: 3 })).toBe(1);
      expect(entryOf(entries, selected, { revision: 2, from: 5 })).toBe(3);
    }
    expect(entryOf(entries, 2, { revision: 9, from: 4 })).toBe(-1);
  });
});
