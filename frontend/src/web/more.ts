/* On a narrow screen the navigation, the filters and a session's links show what matters first, and the rest on request. */
for (const more of document.querySelectorAll<HTMLButtonElement>('[data-more]')) {
  more.hidden = false;
  more.addEventListener('click', () => {
    more.setAttribute('aria-expanded', String(more.ariaExpanded !== 'true'));
  });
}
