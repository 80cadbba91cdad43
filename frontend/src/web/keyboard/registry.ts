/* One registry of keys with sections; the sheet behind "?" is made from it, so it cannot be wrong. */

export type Shortcut = {
  section: string;
  keys: string[]; // as guards.nameOf() calls them; "g s" is a sequence, "Ctrl+Enter" the one chord
  does: string;
  about?: string; // further words by which the palette finds it
  run(event: KeyboardEvent): void;
  repeats?: boolean; // may a held key fire again?
};

export const registry: Shortcut[] = [];

/** Adds shortcuts until the returned function is called. */
export function addShortcuts(...added: Shortcut[]): () => void {
  registry.push(...added);
  return () => {
    for (const shortcut of added) registry.splice(registry.indexOf(shortcut), 1);
  };
}
