/* The replay's keys. */
import { copy } from '../web/copy';
import { addShortcuts, type Shortcut } from '../web/keyboard/registry';
import { eventAfter, eventBefore } from './manifest/events';
import { kindNames } from '../web/kinds';
import type { Player } from './state/player.svelte';
import type { Replay } from './state/replay.svelte';

type MessageKeys = { copyText(): void; copyJson(): void; togglePin(): void };

export function replayKeys(replay: Replay, player: Player, message: MessageKeys): () => void {
  const user = kindNames.indexOf('user');
  const isPrompt = (i: number) => replay.manifest!.entries.kind[i] === user;
  const go = (step: number | null | undefined, jump = false) => {
    player.stop();
    if (step) replay.go(step, jump);
  };
  const key = (keys: string[], does: string, run: Shortcut['run'], repeats = false): Shortcut => ({
    section: 'Replay',
    keys,
    does,
    run,
    repeats,
  });
  const visit = (address: string | null) => {
    if (address) location.assign(address);
  };

  const { pins_url, previous_url, next_url, diff_page_url } = replay.props;
  const offered: Shortcut[] = [];
  if (replay.notes.writable)
    offered.push(key(['a'], 'Leave a note on this step', () => (replay.notes.writing = true)));
  if (pins_url) offered.push(key(['p'], 'Pin or unpin the message', () => message.togglePin()));
  if (diff_page_url)
    offered.push(
      key(['d'], 'Compare with the step before', () => {
        if (replay.step > 1) visit(replay.diffAddress(replay.step - 1));
      }),
      key(['b'], 'Diff to the recorded run at this step', () => visit(replay.besideAddress)),
    );
  if (previous_url) offered.push(key(['['], 'Previous session', () => visit(previous_url)));
  if (next_url) offered.push(key([']'], 'Next session', () => visit(next_url)));

  return addShortcuts(
    key(['ArrowLeft'], 'Previous step', () => go(replay.step - 1), true),
    key(['ArrowRight'], 'Next step', () => go(replay.step + 1), true),
    key(
      ['Shift+ArrowLeft'],
      'Previous event',
      () => go(eventBefore(replay.manifest?.events ?? [], replay.step), true),
      true,
    ),
    key(
      ['Shift+ArrowRight'],
      'Next event',
      () => go(eventAfter(replay.manifest?.events ?? [], replay.step), true),
      true,
    ),
    key(['PageUp'], 'Ten steps back', () => go(Math.max(1, replay.step - 10)), true),
    key(['PageDown'], 'Ten steps on', () => go(replay.step + 10), true),
    key(['Home'], 'First step', () => go(1, true)),
    key([...'123456789'], 'Go to a step: type its number', (event) => {
      const field = document.querySelector<HTMLInputElement>('.goto input')!;
      field.focus();
      field.value = event.key;
      field.dispatchEvent(new Event('input', { bubbles: true }));
    }),
    key(['End'], 'Last step; follows a live session', () => {
      player.stop();
      replay.end();
    }),
    key(['Space'], 'Play or pause', () => player.toggle()),
    key(['<'], 'Slower', () => player.faster(-1)),
    key(['>'], 'Faster', () => player.faster(1)),
    key(['.'], 'Follow live, or stay here', () =>
      replay.following ? replay.stay() : replay.manifest?.session.live && replay.follow(),
    ),
    key(['j'], 'Next row', () => replay.move(1), true),
    key(['k'], 'Previous row', () => replay.move(-1), true),
    key(['Shift+j'], 'Next user prompt', () => replay.move(1, isPrompt), true),
    key(['Shift+k'], 'Previous user prompt', () => replay.move(-1, isPrompt), true),
    key(['r'], 'Show or hide removed rows', () => (replay.ghosts = !replay.ghosts)),
    key(['x'], 'Axis: steps or time', () =>
      replay.measureBy(replay.axisName === 'time' ? 'steps' : 'time'),
    ),
    key(['t'], 'Next view: table, transcript, treemap, request', () => replay.nextView()),
    key(['f'], 'Fold or unfold the composition', () => (replay.foldChoice = !replay.folded)),
    key(
      ['c'],
      'Copy the link to this run, step, view and row',
      () => void copy(replay.link, 'Link'),
    ),
    key(['y'], 'Copy the row’s text', () => message.copyText()),
    key(['Shift+y'], 'Copy the row as JSON', () => message.copyJson()),
    key(['Escape'], 'Close the message, then return to live', () => {
      if (replay.selected >= 0) replay.select(-1);
      else if (replay.view !== 'table') replay.show('table');
      else if (replay.manifest?.session.live) replay.follow();
    }),
    ...offered,
  );
}
