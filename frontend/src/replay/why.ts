/* A button at selected text: why did the agent forget it? On pages of one session (`data-why`). */

import { addressFor } from './manifest/why';

let button: HTMLAnchorElement | undefined;

function hide(): void {
  button?.remove();
  button = undefined;
}

function offer(page: string): void {
  const selection = getSelection();
  const address =
    selection &&
    addressFor(page, selection.toString(), new URL(location.href).searchParams.get('run'));
  hide();
  if (!selection || !address || selection.isCollapsed) return;
  const place = selection.getRangeAt(0).getBoundingClientRect();
  if (!place.width) return;
  button = document.createElement('a');
  button.className = 'button primary why-ask';
  button.href = address;
  button.textContent = 'Why did it forget?';
  document.body.append(button);
  const left = Math.min(place.left + scrollX, scrollX + innerWidth - button.offsetWidth - 8);
  const above = place.top + scrollY - button.offsetHeight - 6;
  button.style.left = `${Math.max(left, 8)}px`;
  button.style.top = `${above > scrollY ? above : place.bottom + scrollY + 6}px`;
}

const page = document.body.dataset.why;
if (page) {
  document.addEventListener('pointerup', (event) => {
    if (event.target !== button) setTimeout(() => offer(page));
  });
  document.addEventListener('keyup', (event) => {
    if (event.shiftKey || event.key === 'Shift') offer(page);
    if (event.key === 'Escape') hide();
  });
}
