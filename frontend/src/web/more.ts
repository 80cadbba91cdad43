/* On a narrow screen the navigation and the filters show what matters first, and the rest on request. */
for (const more of document.querySelectorAll<HTMLButtonElement>('[data-more]')) {
  more.hidden = false;
  more.addEventListener('click', () => {
    more.setAttribute('aria-expanded', String(more.ariaExpanded !== 'true'));
  });
}
