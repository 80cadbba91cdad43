import { expect, test } from 'vitest';
import { labeled } from '../../src/replay/manifest/labels';
import { decode, type Cause, type SessionEvent } from '../../src/replay/manifest/manifest';
import { manifestOf } from './manifests';

const event = (step: number, label: string): SessionEvent => ({
  step,
  kind: 'offload',
  revision: step,
  label,
  before: null,
  after: null,
  basis: 'measured',
  url: null,
});
const card = (step: number, title: string) => ({ step, title }) as Cause;

test('labels come to the events that lack them; what arrived meanwhile stays', () => {
  const manifest = {
    ...decode(manifestOf([], 9)),
    labeled_from: 5,
    events: [event(2, ''), event(5, 'own'), event(9, 'new')],
    causes: [card(2, ''), card(9, 'new')],
  };
  const found = { events: [event(2, 'two'), event(5, 'old')], causes: [card(2, 'idle')] };
  const whole = labeled(manifest, found);
  expect(whole.events.map(({ step, label }) => [step, label])).toEqual([
    [2, 'two'],
    [5, 'own'],
    [9, 'new'],
  ]);
  expect(whole.causes.map(({ title }) => title)).toEqual(['idle', 'new']);
  expect(whole.labeled_from).toBe(1);
});
