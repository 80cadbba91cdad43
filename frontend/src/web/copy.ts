/* Copying, and the short sentence that says it worked. */

let shown: HTMLElement | undefined;

/** A sentence at the bottom for two seconds, also read out. For success only: errors stay by their cause. */
export function say(sentence: string): void {
  shown?.remove();
  const box = document.createElement('div');
  box.className = 'said';
  box.setAttribute('role', 'status');
  document.body.append(box);
  box.textContent = sentence;
  shown = box;
  setTimeout(() => box.remove(), 2000);
}

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Not a secure origin (a plain http address in the LAN): the old way still works there.
    const field = document.createElement('textarea');
    field.value = text;
    field.className = 'seen-by-ear';
    document.body.append(field);
    field.select();
    document.execCommand('copy');
    field.remove();
  }
  say(`${what} copied`);
}

// <button data-copy="text"> or data-copy-from="#id", anywhere in a page.
document.addEventListener('click', (event) => {
  const button = (event.target as Element | null)?.closest<HTMLElement>(
    '[data-copy],[data-copy-from]',
  );
  if (!button) return;
  const source = button.dataset.copyFrom ? document.querySelector(button.dataset.copyFrom) : null;
  void copy(
    source?.textContent?.trim() ?? button.dataset.copy ?? '',
    button.dataset.copyName ?? 'Text',
  );
});
