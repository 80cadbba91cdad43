import { expect, test } from 'vitest';
import { commandsFor, sessionCommands } from '../../src/web/keyboard/commands';
import type { Shortcut } from '../../src/web/keyboard/registry';

const made = (does: string, keys = 'x'): Shortcut => ({
  section: 'Everywhere',
  keys: [keys],
  does,
  run: () => {},
});
const registry = [
  made('Go to Sessions', 'g s'),
  made('Go to Search', 'g f'),
  { ...made('New policy'), section: 'Policies' },
];
const does = (typed: string, search: ((words: string) => void) | null = null) =>
  commandsFor(registry, typed, search).map((one) => one.does);

test.each([
  ['', ['New policy', 'Go to Sessions', 'Go to Search']],
  ['go SE', ['Go to Sessions', 'Go to Search']],
  ['to go sess', ['Go to Sessions']],
  ['8417', []],
])('%j finds %j', (typed, found) => {
  expect(does(typed)).toEqual(found);
});

test('policies are offered by name, once something is typed', () => {
  const policies = [{ does: 'Policy balanced', keys: '', run: () => {} }];
  const names = (typed: string) =>
    commandsFor(registry, typed, null, policies).map(({ does }) => does);
  expect(names('balan')).toEqual(['Policy balanced']);
  expect(names('')).not.toContain('Policy balanced');
});

test('what was typed can be searched for, last', () => {
  const asked: string[] = [];
  const offered = commandsFor(registry, ' 8417 ', (words) => asked.push(words));
  expect(offered.map((one) => one.does)).toEqual(['Search every session for “8417”']);
  offered[0]!.run();
  expect(asked).toEqual(['8417']);
  expect(does('', () => {})).toHaveLength(3);
});

test.each(['step 40', 'Step 40 of the longest session', 'what did it see at #40'])(
  'the search offers the step of %j',
  (typed) => {
    expect(does(typed, () => {})).toEqual([
      `Step 40 of the longest sessions, and search for “${typed}”`,
    ]);
  },
);

test.each(['step', 'step 0', 'footstep 40', 'step 40px'])('%j names no step', (typed) => {
  expect(does(typed, () => {})).toEqual([`Search every session for “${typed}”`]);
});

test('a page is found by what it is about, after those found by name', () => {
  const pages = [
    { ...made('Go to Jobs'), about: 'queued tools' },
    { ...made('Go to Tools'), about: 'unused tools, definitions' },
  ];
  const names = (typed: string) => commandsFor(pages, typed, null).map((one) => one.does);
  expect(names('tools')).toEqual(['Go to Tools', 'Go to Jobs']);
  expect(names('go unused')).toEqual(['Go to Tools']);
});

test('sessions are found by title and id, running ones first, before the search', () => {
  const session = (title: string, external_id: string, running = false) => ({
    id: external_id,
    external_id,
    title,
    agent: 'nightly-agent',
    running,
    url: '',
  });
  const listed = [
    session('Nightly build', '0123456789abcdef0123456789abcdef'),
    session('Other', 'other'),
    session('', 'nightly-1', true),
    ...[2, 3, 4, 5].map((n) => session('Nightly build', `n-${n}`)),
  ];
  const found = sessionCommands(listed, ' NIGHTLY ');
  expect(found.map(({ does, note }) => [does, note]).slice(0, 3)).toEqual([
    ['nightly-1', 'running · nightly-agent'],
    ['Nightly build', 'nightly-agent · 01234567…89abcdef'],
    ['Nightly build', 'nightly-agent · n-2'],
  ]);
  expect(found).toHaveLength(5);
  const offered = commandsFor(registry, 'nightly', () => {}, [], found);
  expect(offered.map(({ does }) => does).slice(4)).toEqual([
    'Nightly build',
    'Search every session for “nightly”',
  ]);
});
