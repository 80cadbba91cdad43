/* The filter form of a list: a choice takes effect at once, and the address holds only what was chosen.
   And the sessions selected to compare: the button waits for two of them.
   Listens at the document, since the list is redrawn when something changes. */

const formOf = (event: Event) =>
  (event.target as Element | null)?.closest<HTMLFormElement>('form[data-submits-itself]');

document.addEventListener('change', (event) => {
  const at = event.target;
  if (at instanceof HTMLSelectElement || (at instanceof HTMLInputElement && at.type === 'checkbox'))
    formOf(event)?.requestSubmit();
});

document.addEventListener('submit', (event) => {
  const fields = [...(formOf(event)?.elements ?? [])] as HTMLInputElement[];
  const empty = fields.filter((field) => field.name && !field.value);
  for (const field of empty) field.disabled = true;
  // Coming back to the page finds the fields in order.
  setTimeout(() => empty.forEach((field) => (field.disabled = false)));
});

const selected = () => document.querySelectorAll<HTMLInputElement>('[data-chosen]:checked').length;

function countSelected(): void {
  const button = document.querySelector<HTMLButtonElement>('[data-compare]');
  if (!button) return;
  const count = selected();
  button.disabled = count !== 2;
  button.textContent = count && count !== 2 ? `Compare (${count} of 2)` : 'Compare';
}

document.addEventListener('change', (event) => {
  if (event.target instanceof HTMLInputElement && event.target.matches('[data-chosen]'))
    countSelected();
});
document.addEventListener('htmx:afterSettle', countSelected);
addEventListener('pageshow', countSelected);
