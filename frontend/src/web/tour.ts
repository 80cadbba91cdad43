/* The bar of the guided tour: Escape ends the tour, unless something else on the page means Escape. */
const bar = document.querySelector<HTMLElement>('.tour')!;

document.addEventListener('keydown', (event) => {
  const isOfPage = document.activeElement === document.body || bar.contains(document.activeElement);
  if (event.key !== 'Escape' || event.defaultPrevented || !isOfPage) return;
  bar.querySelector<HTMLAnchorElement>('[data-end]')!.click();
});
