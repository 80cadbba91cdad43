/* The filter form of a list: a choice takes effect at once, and the address holds only what was chosen. */

for (const form of document.querySelectorAll<HTMLFormElement>('form[data-submits-itself]')) {
  for (const select of form.querySelectorAll('select')) {
    select.addEventListener('change', () => form.requestSubmit());
  }
  form.addEventListener('submit', () => {
    const empty = [...form.elements].filter(
      (field): field is HTMLInputElement => 'value' in field && 'name' in field && !field.value,
    );
    for (const field of empty) field.disabled = true;
    // Back to the page as it was left, fields must work again.
    setTimeout(() => empty.forEach((field) => (field.disabled = false)));
  });
}
