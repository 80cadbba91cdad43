/* The page of a file that holds one replay: it works from the disk, without a server. */
import '../../main.css';
import './file.css';
import '../../web/theme';
import '../../web/copy';
import '../../web/keyboard/keyboard';
import { mount } from 'svelte';
import { answerFrom } from '../../web/request';
import Replay from '../Replay.svelte';
import type { Props } from '../state/shown.svelte';
import { Answers } from './answers';

async function unpacked(text: string): Promise<string> {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).text();
}

const data = document.getElementById('replay-data')!;
const target = document.getElementById('replay')!;
void unpacked(data.textContent!).then((text) => {
  data.remove(); // it is held once
  const answers = new Answers(text);
  answerFrom(answers.answer);
  const props: Props = {
    manifest_url: 'manifest',
    previews_url: 'previews',
    find_url: 'find',
    texts_url: 'texts',
    sources_url: 'sources',
    step_notes_url: 'notes',
    events_url: 'events',
    entry_url: 'entry',
    recitation_url: 'recitation',
    replay_url: '#',
    in_file: true,
    ...answers.get<Partial<Props>>('props'),
  };
  target.replaceChildren();
  mount(Replay, { target, props });
});
