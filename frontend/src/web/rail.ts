/* On a narrow screen the navigation shows its first entries, and the others on request. */
const more = document.querySelector<HTMLButtonElement>('.rail [data-more]');
if (more) {
  more.hidden = false;
  more.addEventListener('click', () => {
    more.setAttribute('aria-expanded', String(more.ariaExpanded !== 'true'));
  });
}
