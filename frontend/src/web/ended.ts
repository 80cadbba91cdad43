/* What stands on a page once its reader may no longer see it. */

/** Takes the content off the page: a reader without access must not go on reading what came before. */
export function removeContent(): void {
  const title = 'You no longer have access';
  const heading = document.createElement('h1');
  heading.textContent = title;
  const why = document.createElement('p');
  why.textContent =
    'You were signed out, your membership ended, or what was here was deleted. The content was removed from this page.';
  const again = document.createElement('a');
  again.href = location.href;
  again.textContent = 'Load the page again';
  const said = document.createElement('section');
  said.className = 'empty';
  said.setAttribute('role', 'alert');
  said.append(heading, why, again);
  document.title = title;
  document.querySelector('.crumbs')?.replaceChildren();
  document.querySelector('main')?.replaceChildren(said);
}
