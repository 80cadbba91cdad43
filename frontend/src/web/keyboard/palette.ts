/* The command palette: a dialog with everything that has a key, and the search. */
import { commandsFor, sessionCommands, type Command, type Listed } from './commands';
import { ask } from '../request';
import { registry } from './registry';

/** A command for each policy; none on pages without the link to them. */
async function policyCommands(): Promise<Command[]> {
  const link = document.querySelector<HTMLElement>('[data-policies]');
  if (!link) return [];
  const found = await ask<{ policies: { name: string; url: string }[] }>(link.dataset.policies!);
  return found.policies.map(({ name, url }) => ({
    does: `Policy ${name}`,
    keys: '',
    run: () => location.assign(url),
  }));
}

/** The newest sessions that hold the text; none on pages without the link to them. */
async function sessionsWith(text: string): Promise<Listed[]> {
  const link = document.querySelector<HTMLElement>('[data-sessions]');
  if (!link) return [];
  const query = new URLSearchParams({ q: text });
  return (await ask<{ sessions: Listed[] }>(`${link.dataset.sessions!}?${query}`)).sessions;
}

const LEAST_TYPED = 2; // characters before sessions are asked for
const MOST_TYPED = 200; // what the API takes
const WAIT = 200; // ms without a key before they are

/** Opens it; `search` goes to the search with these words, null where there is none. */
export function showPalette(search: ((words: string) => void) | null): void {
  const dialog = document.createElement('dialog');
  dialog.className = 'palette';
  dialog.setAttribute('aria-label', 'Commands');
  const field = document.createElement('input');
  field.type = 'text';
  field.placeholder = 'Go to, do, or search everything a model saw';
  field.setAttribute('role', 'combobox');
  field.setAttribute('aria-expanded', 'true');
  field.setAttribute('aria-controls', 'palette-list');
  field.setAttribute('aria-label', 'Command or words to search for');
  const list = document.createElement('ul');
  list.id = 'palette-list';
  list.setAttribute('role', 'listbox');
  dialog.append(field, list);
  let offered: Command[] = [];
  let chosen = 0;
  let policies: Command[] = [];
  let listed: Listed[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;

  const choose = (place: number) => {
    chosen = (place + offered.length) % Math.max(offered.length, 1);
    for (const [at, row] of [...list.children].entries())
      row.setAttribute('aria-selected', String(at === chosen));
    list.children[chosen]?.scrollIntoView({ block: 'nearest' });
    field.setAttribute('aria-activedescendant', `palette-${chosen}`);
  };
  const take = (command: Command | undefined) => {
    if (!command) return;
    dialog.close();
    command.run();
  };
  const fill = () => {
    const sessions = sessionCommands(listed, field.value);
    offered = commandsFor(registry, field.value, search, policies, sessions);
    list.replaceChildren(
      ...offered.map((command, at) => {
        const row = document.createElement('li');
        row.id = `palette-${at}`;
        row.setAttribute('role', 'option');
        row.append(command.does);
        if (command.note) {
          const note = document.createElement('small');
          note.append(command.note);
          row.append(note);
        }
        if (command.keys) {
          const key = document.createElement('kbd');
          key.append(command.keys);
          row.append(key);
        }
        row.addEventListener('click', () => take(command));
        return row;
      }),
    );
    choose(0);
  };
  /** Adds what the server found; a row chosen with the arrows stays chosen. */
  const refill = () => {
    const held = chosen ? offered[chosen] : undefined;
    fill();
    const at = offered.findIndex(({ does, note }) => does === held?.does && note === held.note);
    choose(Math.max(at, 0));
  };
  const find = () => {
    const typed = field.value;
    // Without them, the rest is offered all the same.
    sessionsWith(typed.trim()).then(
      (found) => {
        if (field.value !== typed) return;
        listed = found;
        refill();
      },
      () => {},
    );
  };
  field.addEventListener('input', () => {
    clearTimeout(timer);
    const { length } = field.value.trim();
    if (length < LEAST_TYPED) listed = [];
    else if (length <= MOST_TYPED) timer = setTimeout(find, WAIT);
    fill();
  });
  field.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') choose(chosen + 1);
    else if (event.key === 'ArrowUp') choose(chosen - 1);
    else if (event.key === 'Enter') take(offered[chosen]);
    else return;
    event.preventDefault();
  });
  dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
  dialog.addEventListener('close', () => {
    clearTimeout(timer);
    dialog.remove();
  });
  document.body.append(dialog);
  fill();
  dialog.showModal();
  policyCommands().then(
    (found) => {
      policies = found;
      if (field.value) refill();
    },
    () => {},
  );
}
