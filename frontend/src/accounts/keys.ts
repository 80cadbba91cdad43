/* <form data-makes-key> makes a key without leaving the page: its token goes into every [data-token], this once. */
import { ask, problemFrom } from '../web/request';

const form = document.querySelector<HTMLFormElement>('form[data-makes-key]');

function element(tag: string, className: string, ...children: (Node | string)[]): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...children);
  return made;
}

function show(token: string): void {
  for (const place of document.querySelectorAll('[data-token]')) place.textContent = token;
  const code = element('code', '', token);
  code.id = 'made-token';
  const copy = element('button', 'copy', 'Copy') as HTMLButtonElement;
  copy.type = 'button';
  copy.dataset.copyFrom = '#made-token';
  copy.dataset.copyName = 'Key';
  document
    .querySelector('[data-made-key]')
    ?.replaceChildren(
      element('p', '', 'Made, and filled in on this page. Copy it now: it is not shown again.'),
      element('div', 'snippet', code, copy),
    );
}

form?.addEventListener('submit', async (event) => {
  event.preventDefault();
  const button = form.querySelector('button')!;
  button.disabled = true;
  try {
    const { token } = await ask<{ token: string }>(form.action, {
      method: 'POST',
      headers: { accept: 'application/json' },
      body: new FormData(form),
    });
    show(token);
    form.hidden = true;
    document.querySelector<HTMLElement>('[data-made-key] button')?.focus();
  } catch (error) {
    const problem = problemFrom(error);
    document
      .querySelector('[data-made-key]')
      ?.replaceChildren(element('p', 'bad', `${problem?.title ?? ''}. ${problem?.detail ?? ''}`));
    button.disabled = false;
  }
});
