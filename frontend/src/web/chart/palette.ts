/* How a series looks: color from the style sheet, and a dash or a hatch, so that color is never alone. */

import { readColors } from '../colors';

export const colors = ['chart-1', 'chart-2', 'chart-3', 'chart-4', 'chart-5'] as const;
const dashes = [[], [7, 4], [2, 3], [9, 3, 2, 3], [4, 2]];
const hatches = ['', '/', '\\', '.', '-'];

export type Look = { color: string; dash: number[]; hatch: string };
export type Palette = {
  series: string[];
  text: string;
  muted: string;
  grid: string;
  panel: string;
  mark: string;
};

/** Colors as the page has them now: another theme, other colors. */
export function readPalette(inside: HTMLElement): Palette {
  return readColors(inside, (color) => ({
    series: colors.map(color),
    text: color('chart-text'),
    muted: color('muted'),
    grid: color('chart-grid'),
    panel: color('panel'),
    mark: color('chart-mark'),
  }));
}

/** `dash` is for what others are compared with: it looks the same in every chart. */
export function lookOf(palette: Palette, index: number, dash = false): Look {
  const color = palette.series[index % palette.series.length];
  // A sixth series has the first one's color, and another dash and hatch.
  const line = index + 3 * Math.floor(index / colors.length);
  return {
    color: dash ? palette.muted : color,
    dash: dash ? [5, 4] : dashes[line % dashes.length],
    hatch: hatches[line % hatches.length],
  };
}

/** What a bar or an area is filled with. */
export function fill(
  context: CanvasRenderingContext2D,
  look: Look,
  panel: string,
  ratio: number,
): CanvasPattern | string {
  if (!look.hatch) return look.color;
  const size = Math.round(6 * ratio);
  const tile = document.createElement('canvas');
  tile.width = tile.height = size;
  const drawing = tile.getContext('2d')!;
  drawing.fillStyle = look.color;
  drawing.fillRect(0, 0, size, size);
  drawing.strokeStyle = drawing.fillStyle = panel;
  drawing.lineWidth = 1.2 * ratio;
  drawing.beginPath();
  if (look.hatch === '.') drawing.arc(size / 2, size / 2, 1.5 * ratio, 0, 7);
  else if (look.hatch === '-') {
    drawing.moveTo(0, size / 2);
    drawing.lineTo(size, size / 2);
  } else
    for (const shift of [-size, 0, size]) {
      const [from, to] = look.hatch === '/' ? [size + 1, -1] : [-1, size + 1];
      drawing.moveTo(shift - 1, from);
      drawing.lineTo(shift + size + 1, to);
    }
  if (look.hatch === '.') drawing.fill();
  else drawing.stroke();
  return context.createPattern(tile, 'repeat') ?? look.color;
}
