/* When a bare key is the page's, and when it belongs to someone else. */

export type Pressed = Pick<
  KeyboardEvent,
  'key' | 'shiftKey' | 'ctrlKey' | 'metaKey' | 'altKey' | 'isComposing' | 'defaultPrevented'
> & {
  target: { closest(selector: string): unknown } | null;
  getModifierState?(name: string): boolean;
};

const typing =
  'input:not([type="checkbox"],[type="radio"],[type="button"],[type="submit"],[type="range"]),' +
  'textarea,select,[contenteditable]:not([contenteditable="false"]),' +
  '[role="textbox"],[role="combobox"],[role="listbox"],[role="option"]';

/** Chords stay the browser's; AltGr only writes characters ("[" on a German keyboard), so it is none. */
function isChord(event: Pressed): boolean {
  if (event.getModifierState?.('AltGraph')) return false;
  return event.ctrlKey || event.metaKey || event.altKey;
}

function isTyping(event: Pressed): boolean {
  return Boolean(event.target?.closest(typing));
}

/** A focused button or link keeps Space and Enter. */
function isActivation(event: Pressed): boolean {
  return (
    (event.key === ' ' || event.key === 'Enter') &&
    Boolean(
      event.target?.closest('a,button,summary,[role="button"],[type="checkbox"],[type="radio"]'),
    )
  );
}

/** The registry's name for a key: "Shift+ArrowLeft", "j", "?" (the shift that a sign needs is not named). */
export function nameOf(event: Pick<KeyboardEvent, 'key' | 'shiftKey'>): string {
  const key = event.key === ' ' ? 'Space' : event.key;
  if (!event.shiftKey) return key;
  if (key.length > 1) return `Shift+${key}`;
  return key.toLowerCase() === key.toUpperCase() ? key : `Shift+${key.toLowerCase()}`;
}

/** ⌘ or Ctrl with Enter, wherever one types: the page's main button. */
export function isSend(event: Pressed): boolean {
  return (
    event.key === 'Enter' &&
    (event.ctrlKey || event.metaKey) &&
    !event.altKey &&
    !event.shiftKey &&
    !event.isComposing &&
    !event.defaultPrevented
  );
}

/** ⌘ or Ctrl with K, wherever one types: the search page. */
export function isSearch(event: Pressed): boolean {
  return (
    event.key.toLowerCase() === 'k' &&
    (event.ctrlKey || event.metaKey) &&
    !event.altKey &&
    !event.shiftKey &&
    !event.isComposing &&
    !event.defaultPrevented
  );
}

export function isForPage(event: Pressed, dialogOpen: boolean): boolean {
  return (
    !event.defaultPrevented &&
    !event.isComposing &&
    !dialogOpen &&
    !isChord(event) &&
    !isTyping(event) &&
    !isActivation(event)
  );
}
