/* Server pages that keep up. A section with hx-get asks for its page again when its data-topic moves on
   (hx-trigger="moved") or by the clock ("every 15s"); htmx fetches, and Idiomorph changes only what differs. */
import htmx from 'htmx.org';
import { Idiomorph } from 'idiomorph/htmx';
import { IslandElement } from './island';
import { endAccess } from './socket';

/** Whether a field holds input that was not sent yet. */
function isTouched(field: Node): boolean {
  if (field instanceof HTMLInputElement)
    return field.value !== field.defaultValue || field.checked !== field.defaultChecked;
  if (field instanceof HTMLTextAreaElement) return field.value !== field.defaultValue;
  if (!(field instanceof HTMLSelectElement)) return false;
  const given = [...field.options].findIndex((option) => option.defaultSelected);
  return field.selectedIndex !== Math.max(0, given);
}

/** Whether it stands in for an answer that was asked for by itself. */
const waits = (node: Node): boolean => node instanceof Element && node.matches('[data-waits]');

/** New props of an island; what is inside it is the island's. */
function renewProps(script: HTMLScriptElement, props: string | null): void {
  if (script.textContent === props) return;
  script.textContent = props;
  document.querySelector<IslandElement>(`ctx-island[data-props="${script.id}"]`)?.renew();
}

/** Rows in the order that the reader sees; new ones come last. */
function keepOrder(fresh: Element, old: Element): void {
  const ids = [...old.children].map((row) => row.id);
  const placeOf = (row: Element) => ids.indexOf(row.id) + 1 || Infinity;
  fresh.append(...[...fresh.children].sort((a, b) => placeOf(a) - placeOf(b)));
}

Object.assign(Idiomorph.defaults.callbacks, {
  /** False where the page's own stays. */
  beforeNodeMorphed(old: Node, fresh: Node): boolean {
    if (old instanceof IslandElement || isTouched(old)) return false;
    // What was asked for by itself is not asked for again by the section around it.
    if (waits(fresh) && !waits(old)) return false;
    if (old instanceof HTMLScriptElement) {
      renewProps(old, fresh.textContent);
      return false;
    }
    // No row moves away under a hand.
    const isHeld = old instanceof Element && old.matches('[data-holds]:is(:hover, :focus-within)');
    if (isHeld) keepOrder(fresh as Element, old);
    return true;
  },
  /** What a reader opened stays open, and the row that the keys chose stays chosen. */
  beforeAttributeUpdated: (name: string, node: Element): boolean =>
    !(name === 'open' && node.matches('details')) &&
    !(name === 'class' && node.matches('tr.here')) &&
    !node.matches('[data-more]'),
});

document.addEventListener('htmx:beforeRequest', (event) => {
  const isByClock = (event.target as Element).matches('[hx-trigger*="every"]');
  if (document.hidden && isByClock) event.preventDefault();
});

document.addEventListener('htmx:beforeSwap', (event) => {
  const { detail } = event as CustomEvent<{
    serverResponse: string;
    target: Element;
    shouldSwap: boolean;
    xhr: XMLHttpRequest;
  }>;
  const asksForPage = (event.target as Element).matches('[data-topic][hx-get=""]');
  if (asksForPage && [401, 403, 404].includes(detail.xhr.status)) {
    // Some jobs leave nothing behind, which the server says itself.
    if (detail.target.matches('[data-topic^="job:"]')) location.reload();
    else endAccess();
    return;
  }
  // Another page answers where a session has ended.
  detail.shouldSwap &&= detail.serverResponse.includes(`id="${detail.target.id}"`);
});

/** Has htmx ask for a section again. */
export const refresh = (section: HTMLElement): boolean => htmx.trigger(section, 'moved', {});
