/* The sheet of shortcuts: a native dialog, so focus and Esc are the browser's work. */
import type { Shortcut } from './registry';

const spoken: Record<string, string> = {
  ArrowLeft: '←',
  ArrowRight: '→',
  ArrowUp: '↑',
  ArrowDown: '↓',
  'Shift+ArrowLeft': '⇧ ←',
  'Shift+ArrowRight': '⇧ →',
  Escape: 'Esc',
  'Ctrl+Enter': '⌘/Ctrl ↵',
};

function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  made.append(...children);
  return made;
}

function keyCaps(keys: string[]): Node[] {
  if (keys.length > 4)
    return [element('kbd', keys[0]!), document.createTextNode(' – '), element('kbd', keys.at(-1)!)];
  return keys
    .flatMap((names, index) => [
      ...(index ? [' or '] : []),
      ...names
        .split(' ')
        .flatMap((name, position) => [
          ...(position ? [' then '] : []),
          element('kbd', spoken[name] ?? name.replace('Shift+', '⇧ ')),
        ]),
    ])
    .map((piece) => (typeof piece === 'string' ? document.createTextNode(piece) : piece));
}

export function showSheet(registry: readonly Shortcut[], off: boolean): void {
  const sections = new Map<string, Shortcut[]>();
  for (const shortcut of registry)
    sections.set(shortcut.section, [...(sections.get(shortcut.section) ?? []), shortcut]);
  const body = element('div');
  body.className = 'body shortcuts';
  const switchedOff = element(
    'p',
    'They are switched off. Your account, at the top right, switches them on.',
  );
  switchedOff.className = 'body';
  for (const [title, list] of [...sections].reverse()) {
    const lines = element('dl');
    for (const shortcut of list)
      lines.append(element('dt', ...keyCaps(shortcut.keys)), element('dd', shortcut.does));
    body.append(element('section', element('h3', title), lines));
  }
  const close = element('button', 'Close');
  close.className = 'button';
  const title = element('h2', 'Keyboard shortcuts');
  title.id = 'shortcuts-title';
  const dialog = element(
    'dialog',
    element('header', title, close),
    ...(off ? [switchedOff] : []),
    body,
  );
  dialog.setAttribute('aria-labelledby', title.id);
  close.addEventListener('click', () => dialog.close());
  dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
