/* The command palette: a dialog with everything that has a key, and the search. */
import { commandsFor, type Command } from './commands';
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
    offered = commandsFor(registry, field.value, search, policies);
    list.replaceChildren(
      ...offered.map((command, at) => {
        const row = document.createElement('li');
        row.id = `palette-${at}`;
        row.setAttribute('role', 'option');
        row.append(command.does);
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
  field.addEventListener('input', fill);
  field.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') choose(chosen + 1);
    else if (event.key === 'ArrowUp') choose(chosen - 1);
    else if (event.key === 'Enter') take(offered[chosen]);
    else return;
    event.preventDefault();
  });
  dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  fill();
  dialog.showModal();
  // Without them, the rest is offered all the same.
  policyCommands().then(
    (found) => {
      policies = found;
      if (field.value) fill();
    },
    () => {},
  );
}
