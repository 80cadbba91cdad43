/* Colors for a canvas, read from the style sheet, since a canvas does not know custom properties. */

/** What `read` makes of the colors that custom properties have inside an element now. */
export function readColors<T>(
  inside: HTMLElement,
  read: (color: (name: string) => string) => T,
): T {
  const probe = document.createElement('span');
  inside.append(probe);
  const colors = read((name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  });
  probe.remove();
  return colors;
}
