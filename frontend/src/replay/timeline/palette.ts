/* The colors and patterns of the timeline's canvas. */
import { readColors } from '../../web/colors';
import { kindNames } from '../../web/kinds';

export type Palette = {
  kinds: string[];
  panel: string;
  text: string;
  hidden: string;
  read: string;
  write: string;
  uncached: string;
  line: string;
};

export function readPalette(inside: HTMLElement): Palette {
  return readColors(inside, (color) => ({
    kinds: kindNames.map(color),
    panel: color('panel'),
    text: color('text'),
    hidden: color('hidden'),
    read: color('read'),
    write: color('write'),
    uncached: color('uncached'),
    line: color('line-strong'),
  }));
}

/** A tile painted with `paint`, to fill with. */
function pattern(
  context: CanvasRenderingContext2D,
  size: number,
  paint: (tile: CanvasRenderingContext2D) => void,
): CanvasPattern | string {
  const tile = document.createElement('canvas');
  tile.width = tile.height = size;
  const drawing = tile.getContext('2d')!;
  paint(drawing);
  return context.createPattern(tile, 'repeat') ?? '#888';
}

function stripes(
  drawing: CanvasRenderingContext2D,
  size: number,
  width: number,
  color: string,
): void {
  drawing.strokeStyle = color;
  drawing.lineWidth = width;
  drawing.beginPath();
  for (const shift of [-size, 0, size]) {
    drawing.moveTo(shift - 1, size + 1);
    drawing.lineTo(shift + size + 1, -1);
  }
  drawing.stroke();
}

/** What each kind is filled with: hatched summary, dotted thinking, plain for the rest. */
export function fills(
  context: CanvasRenderingContext2D,
  palette: Palette,
  ratio: number,
): { kinds: (string | CanvasPattern)[]; hidden: string | CanvasPattern } {
  const size = Math.round(5 * ratio);
  const kinds: (string | CanvasPattern)[] = [...palette.kinds];
  const ground = (drawing: CanvasRenderingContext2D, color: string) => {
    drawing.fillStyle = color;
    drawing.fillRect(0, 0, size, size);
  };
  kinds[kindNames.indexOf('summary')] = pattern(context, size, (drawing) => {
    ground(drawing, palette.kinds[kindNames.indexOf('summary')]);
    stripes(drawing, size, ratio, palette.panel);
  });
  kinds[kindNames.indexOf('thinking')] = pattern(context, size, (drawing) => {
    ground(drawing, palette.kinds[kindNames.indexOf('thinking')]);
    drawing.fillStyle = palette.panel;
    drawing.globalAlpha = 0.6;
    drawing.beginPath();
    drawing.arc(size / 2, size / 2, ratio * 0.8, 0, 7);
    drawing.fill();
  });
  const hidden = pattern(context, size, (drawing) => {
    ground(drawing, palette.panel);
    stripes(drawing, size, 1.4 * ratio, palette.hidden);
  });
  return { kinds, hidden };
}
