import { describe, expect, it, vi } from 'vitest';
import { Trial } from '../../src/lab/trial.svelte';
import type { Done, Figures, Verdict } from '../../src/lab/stream';
import type { Sums } from '../../src/lab/simulation/body';

const sums = (cost: number, recall: number, needs: number): Sums =>
  ({ charged_microusd: cost, in_context: recall, needs, priced: 1 }) as Sums;
const verdict: Verdict = { tone: 'good', sentence: '', detail: '', propose: true };

function figures(through: number, draft: Sums, active: Sums): Figures {
  const rows = [{ id: `${through}`, cost: [1, 1, 1], recall: [1, 1, 1] }] as Figures['rows'];
  return { kind: 'figures', through, total: 2, draft, active, recorded: active, verdict, rows };
}
const done: Done = { kind: 'done', ms: 1, cpu_ms: 1, steps: 9, worst: [], problems: [] };

function tried(): Trial {
  const trial = new Trial();
  trial.begin();
  trial.take(figures(1, sums(10, 0.5, 4), sums(20, 0.75, 4)));
  trial.take(figures(2, sums(30, 0.6, 10), sums(50, 0.8, 10)));
  trial.take(done);
  return trial;
}

describe('a trial', () => {
  it('shows the first figures it has, and is over with all of them', () => {
    const trial = new Trial();
    trial.begin();
    trial.take(figures(1, sums(10, 0.5, 4), sums(20, 0.75, 4)));
    expect([trial.shown?.through, trial.over]).toEqual([1, false]);
    trial.take(figures(2, sums(30, 0.6, 10), sums(50, 0.8, 10)));
    trial.take(done);
    expect([trial.shown?.through, trial.over, trial.rows.size]).toEqual([2, true, 2]);
    expect(trial.tried).toEqual([{ cost: 30, recall: 0.6 }]);
  });

  it('says of how many sessions its place is', () => {
    const trial = new Trial();
    expect(trial.counted).toBe(0);
    trial.begin();
    trial.take(figures(1, sums(10, 0.5, 4), sums(20, 0.75, 4)));
    expect(trial.counted).toBe(1);
    trial.take(figures(2, sums(30, 0.6, 10), sums(50, 0.8, 10)));
    trial.begin();
    trial.take(figures(1, sums(16, 0.5, 4), sums(20, 0.75, 4)));
    expect([trial.counted, trial.position?.cost]).toEqual([2, 46]);
  });

  it('keeps what it showed, and moves the draft by the sessions that are through', () => {
    const trial = tried();
    trial.begin();
    trial.take(figures(1, sums(16, 0.5, 4), sums(20, 0.75, 4)));
    expect([trial.shown?.through, trial.stale, trial.over]).toEqual([2, true, false]);
    expect(trial.position?.cost).toBe(50 - 4);
    expect(trial.position?.recall).toBeCloseTo(0.8 - (0.25 * 4) / 10);
  });

  it('shows part of the sessions after a second', () => {
    const trial = tried();
    const now = vi.spyOn(performance, 'now');
    now.mockReturnValue(5000);
    trial.begin();
    now.mockReturnValue(6500);
    trial.take(figures(1, sums(16, 0.5, 4), sums(20, 0.75, 4)));
    expect([trial.shown?.through, trial.stale]).toEqual([1, true]);
    now.mockRestore();
  });

  it('drops sessions that are no longer among the newest', () => {
    const trial = tried();
    trial.take({
      kind: 'sessions',
      sessions: [{ id: '2', title: '', steps: 1 }],
      left_out: 0,
      active: '',
    });
    expect([...trial.rows.keys()]).toEqual(['2']);
  });

  it('says that a stream ended early, and forgets with other sessions', () => {
    const trial = tried();
    trial.begin();
    trial.end();
    expect(trial.problem?.title).toBe('The simulation stopped');
    trial.forget();
    expect([trial.shown, trial.rows.size, trial.problem]).toEqual([null, 0, null]);
  });
});
