import { describe, expect, it } from 'vitest';
import { costChange, losers, sorted } from '../../src/lab/simulation/lines';
import {
  reproduced,
  sofar,
  spreadText,
  summary,
  ttlApart,
} from '../../src/lab/simulation/sentences';
import { measured, rows, toned } from '../../src/lab/simulation/figures';
import { best } from '../../src/web/chart/scatter';
import { scatterOf } from '../../src/lab/simulation/scatter';
import type { Beside, Body, Figures, SessionLine, Version } from '../../src/lab/simulation/body';

const spread = (median: number, p10 = median, p90 = median, n = 9) => ({ median, p10, p90, n });

function version(
  role: Version['role'],
  sums: Partial<Version['sums']> = {},
  more: Partial<Version> = {},
): Version {
  return {
    ref: role === 'recorded' ? 'recorded' : `${role}@1`,
    name: role,
    number: 1,
    role,
    sessions: 4,
    sums: {
      tokens_sent: 1000,
      peak_tokens: 300,
      peak_share: null,
      cost_microusd: 50_000,
      charged_microusd: 52_000,
      priced: 4,
      cache_read_share: 0.9,
      compactions: 1,
      revisions: 2,
      needs: 10,
      in_context: 0.8,
      named: 0.1,
      retrievable: 0.1,
      lost: 0,
      read_back_tokens: 40,
      ...sums,
    },
    against_recorded: role === 'recorded' ? null : { tokens: spread(0.7), cost: spread(0.9) },
    against_active:
      role === 'recorded'
        ? null
        : {
            tokens: spread(0.9),
            cost: spread(0.9),
            peak: spread(1),
            priced: 4,
            cheaper: 3,
            costlier: 1,
            with_needs: 2,
            hides_more: 1,
          },
    ...more,
  };
}

const body = (more: Partial<Body> = {}): Body => ({
  id: 's',
  state: 'done',
  done: 4,
  total: 4,
  draft: 'draft@1',
  active: 'active@1',
  against: 'active',
  note: '',
  job: null,
  problem: null,
  through: 4,
  verdict: { tone: 'good', sentence: '', detail: '', dominated: false },
  problems: [],
  chosen: {},
  versions: [version('draft'), version('active'), version('recorded')],
  regressions: [],
  probes: [],
  assumptions: [],
  ...more,
});
const figures = (cost: number | null, place: number | null = 1, lost = 0, needs = 5): Figures => ({
  tokens_sent: (cost ?? 1) * 10,
  charged_microusd: cost,
  in_context: place,
  lost,
  needs,
});
const line = (
  id: string,
  draft: Figures | null,
  active: Figures | null = figures(100),
): SessionLine => ({ id, title: id, steps: 3, problem: '', draft, active, recorded: null });
const none: Beside = { sessions: [], tried: [] };

describe('what lies behind the verdict', () => {
  it('says who gets cheaper, who loses what was needed, and of whom less is in context', () => {
    const beside = {
      sessions: [
        line('a', figures(50, 1, 0.2)),
        line('b', figures(50, 1, 0.2), figures(1, 1, 0.2)),
        line('c', null),
      ],
      tried: [],
    };
    expect(losers(beside.sessions)).toBe(1);
    expect(summary(body(), beside)).toBe(
      '3 of 4 sessions get cheaper, 1 costlier; 1 loses a fact that was needed later; ' +
        '1 has lower recall; cost including reading back of the median session −10 % (p10 −10 %, p90 −10 %).',
    );
    expect(summary(body(), none)).toContain('none loses a fact that was needed later');
  });

  it('has nothing behind it before a session is through, and the recording alone for the active version', () => {
    expect(summary(body({ state: 'partial', through: 0 }), none)).toBe('');
    expect(summary(body({ draft: 'active@1', against: 'recorded' }), none)).toMatch(
      /^Cost including reading back of the median session −10 %/,
    );
  });
});

describe('the table', () => {
  const of = (name: string) => rows.find((row) => row.name === name)!;

  it('changes amounts by a share, shares by points, counts by a number', () => {
    const draft = version('draft', { tokens_sent: 900, in_context: 0.7, compactions: 5 });
    const active = version('active');
    expect(of('Tokens sent').change(draft, active)).toEqual({ text: '−10 %', tone: 'less' });
    expect(of('Needed facts in context').change(draft, active)).toEqual({
      text: '−10.0 points',
      tone: 'more',
    });
    expect(of('Compactions').change(draft, active)).toEqual({ text: '+4', tone: 'muted' });
    expect([of('Tokens sent').of(draft), of('Needed facts in context').of(draft)]).toEqual([
      '900',
      '70.0 %',
    ]);
  });

  it('shows an unpriced cost as unknown, and nothing of what a recording has none of', () => {
    const unpriced = version('draft', { cost_microusd: null, charged_microusd: null });
    expect(of('Cost including reading back').of(unpriced)).toBe('unknown');
    expect(of('Cost without reading back').of(unpriced)).toBe('unknown');
    expect(of('Cost without reading back').change(unpriced, version('active'))).toBe(null);
    expect(of('Revisions').of(version('recorded', { revisions: undefined }))).toBe('–');
  });

  it('writes a spread with its ends, and without them for one session', () => {
    expect(spreadText(spread(0.88, 0.79, 1.03))).toBe('−12 % [−21 % … +3.0 %]');
    expect(spreadText(spread(0.88, 0.88, 0.88, 1))).toBe('−12 %');
    expect(spreadText(null)).toBe('–');
    expect([toned(0.1), toned(0.1, -1), toned(0), toned(null)]).toEqual([
      'more',
      'less',
      'muted',
      'muted',
    ]);
  });
});

it('orders sessions by what got worse, and keeps those it cannot tell for last', () => {
  const lines = [
    line('same', figures(100)),
    line('unknown', figures(null)),
    line('costlier', figures(150, 0.9)),
    line('hidden', figures(90, 0.2)),
  ];
  expect(sorted(lines, 'cost', 'active').map((one) => one.id)).toEqual([
    'costlier',
    'same',
    'hidden',
    'unknown',
  ]);
  expect(sorted(lines, 'place', 'active')[0].id).toBe('hidden');
  expect(sorted(lines, 'order', 'active')).toEqual(lines);
  expect(costChange({ ...lines[2], recorded: figures(300) }, 'recorded')).toBe(-0.5);
});

it('draws each version that was tried, the draft in front, and only groups that are there', () => {
  const point = { cost: 5, in_context: 0.5, lost: 0, url: null };
  const versions = [
    version('draft'),
    version('recorded', { oracle_microusd: 40_000, charged_microusd: 60_000 }),
  ];
  const scatter = scatterOf(body({ versions, through: 4, total: 4 }), {
    sessions: [],
    tried: [
      { ...point, ref: 'a', role: 'draft' },
      { ...point, ref: 'b', role: 'tried', url: '/lab/x/' },
      { ...point, ref: 'c', role: 'tried', in_context: null },
    ],
  });
  expect(scatter.points.map((one) => [one.label, one.here, one.url])).toEqual([
    ['a', true, undefined],
    ['b', false, '/lab/x/'],
    ['recorded', undefined, undefined],
    ['oracle', undefined, undefined],
  ]);
  expect(scatter.points.at(-2)).toMatchObject({ x: 60_000, bound: true });
  expect(scatter.points.at(-1)).toMatchObject({ x: 40_000, y: 1, bound: true });
  expect(best(scatter.points).map((one) => one.label)).toEqual(['a', 'b']);
  expect(scatter.groups.map((group) => group.name)).toEqual(['draft', 'tried', 'bounds']);
});

describe('the TTL apart', () => {
  const sums = (ttl: number | null): Version['sums'] =>
    version('draft', {
      cost_microusd: 80_000,
      cost_recorded_microusd: 100_000,
      cost_recorded_ttl_microusd: ttl,
    }).sums;
  it('says what it changes, and what edits do', () => {
    expect(ttlApart(sums(95_000))).toBe(
      'Against the recorded cost, the TTL changes −5.0 % and edits −15 %.',
    );
    expect(ttlApart(sums(100_000))).toBe('');
    expect(ttlApart(sums(null))).toBe('');
  });
});

describe('the recorded column', () => {
  const usage = {
    sessions: 4,
    tokens: 2000,
    cache_read_share: 0.955,
    tokens_at_least: true,
    cost_at_least: false,
    cost_measured: true,
  };
  const shown = (more: Partial<typeof usage>, role: Version['role'] = 'recorded') =>
    rows.flatMap((row) => {
      const found = measured(row, version(role, {}, { measured: { ...usage, ...more } }));
      return found ? [[row.name, found.text]] : [];
    });

  it('shows reported usage, and a bound where calls reported none', () => {
    expect(shown({})).toEqual([
      ['Tokens sent', '≥2.0k'],
      ['Cost including reading back', '$0.050'],
      ['Cost without reading back', '$0.050'],
      ['Read from the cache', '95.5 %'],
    ]);
    expect(shown({ cost_at_least: true })[1]).toEqual(['Cost including reading back', '≥$0.050']);
  });
  it('does not call an estimated cost measured', () => {
    expect(shown({ cost_measured: false }).map(([name]) => name)).toEqual([
      'Tokens sent',
      'Read from the cache',
    ]);
  });
  it('says how much of the measured tokens the simulation gives', () => {
    const of = (tokens_at_least: boolean) =>
      reproduced(version('recorded', {}, { measured: { ...usage, tokens_at_least } }));
    expect(of(false)).toContain('1.0k of the 2.0k measured tokens (50 %).');
    expect(of(true)).toContain('1.0k tokens; some calls report no usage');
    expect([reproduced(version('recorded')), reproduced(undefined)]).toEqual(['', '']);
  });
  it('says of which part of the sessions figures are', () => {
    expect(sofar({ through: 12, total: 20 })).toBe('12 of 20 sessions');
    expect(sofar({ through: 20, total: 20 })).toBe('');
  });
  it('says what a change is compared with', () => {
    const recorded = version('recorded', {}, { measured: usage });
    expect(measured(rows[0], recorded)).toEqual({ text: '≥2.0k', compared: '1.0k' });
    expect(rows[0].change(version('draft', { tokens_sent: 750 }), recorded)?.text).toBe('−25 %');
    expect(measured(rows[3], recorded)?.compared).toBe(null);
  });
});
