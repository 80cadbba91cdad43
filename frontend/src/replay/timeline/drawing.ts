/* The timeline's picture: a stacked bar per step, below it the share of the prompt that was read,
   written or uncached. Drawn once per manifest, size and theme; scrubbing only moves the playhead above it. */
import type { Composition } from '../manifest/composition';
import { kindCount } from '../manifest/composition';
import type { Manifest } from '../manifest/manifest';
import type { Axis, Column } from '../state/axis';
import { fills, type Palette } from './palette';
import type { Scale } from '../state/scale';

export const laneHeight = 9;
export const laneGap = 5;

/** The tokens at the top of the picture: the window, or more where something went beyond it;
    or else little more than the largest size, for a session that would be a line on the floor. Beside a managed
    run the line of what was never sent leaves the picture where it grows beyond it. */
export function ceiling(
  manifest: Manifest,
  composition: Composition,
  baseline: Float64Array | null,
  scale: Scale,
): number {
  let top = 0;
  const compared = manifest.run.origin === 'managed' ? null : baseline;
  for (let step = 1; step <= manifest.last; step++) {
    top = Math.max(
      top,
      composition.total[step] + manifest.session.hidden,
      manifest.steps.prompt[step - 1] ?? 0,
      compared?.[step - 1] ?? 0,
    );
  }
  const { window } = manifest.session;
  return (
    (scale === 'window' ? Math.max(top, window, manifest.lines.trigger ?? 0) : top || window) * 1.05
  );
}

export function draw(
  canvas: HTMLCanvasElement,
  manifest: Manifest,
  composition: Composition,
  baseline: Float64Array | null,
  ceiling: number,
  axis: Axis,
  palette: Palette,
  width: number,
  height: number,
): void {
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext('2d');
  if (!context || !canvas.width) return;
  const floor = Math.round((height - laneHeight - laneGap) * ratio);
  const perToken = floor / ceiling;
  const cols = axis.columns(canvas.width, (step) => composition.total[step]);
  const gap = cols[0] && cols[0].to - cols[0].from >= 6 * ratio ? Math.round(ratio) : 0;
  const fill = fills(context, palette, ratio);
  const bottom = new Float64Array(cols.length).fill(floor);
  const dim = (step: number) => (context.globalAlpha = step > manifest.session.steps ? 0.45 : 1);

  const layer = (style: string | CanvasPattern, tokens: (step: number) => number) => {
    context.fillStyle = style;
    cols.forEach((column, i) => {
      const high = tokens(column.step) * perToken;
      if (high <= 0) return;
      dim(column.step);
      const top = bottom[i] - high;
      context.fillRect(
        column.from,
        Math.round(top),
        column.to - column.from - gap,
        Math.round(bottom[i]) - Math.round(top),
      );
      bottom[i] = top;
    });
  };
  if (manifest.session.hidden) layer(fill.hidden, () => manifest.session.hidden);
  for (let kind = 0; kind < kindCount; kind++)
    layer(fill.kinds[kind], (step) => composition.byKind[step * kindCount + kind]);

  // Where the provider reported clearly more or less than stands here: its number, as a line. What
  // stands above it may have left the context before, so it is hatched.
  cols.forEach((column, i) => {
    const prompt = manifest.steps.prompt[column.step - 1];
    if (prompt === null || prompt === undefined) return;
    const top = Math.round(floor - prompt * perToken);
    if (Math.abs(top - bottom[i]) < 3 * ratio) return;
    const wide = column.to - column.from;
    if (bottom[i] < top) {
      const high = Math.round(bottom[i]);
      context.clearRect(column.from, high, wide, top - high);
      context.fillStyle = fill.hidden;
      context.fillRect(column.from, high, wide - gap, top - high);
    }
    context.globalAlpha = 0.75;
    context.fillStyle = palette.text;
    context.fillRect(column.from, top, wide, Math.ceil(ratio));
    context.globalAlpha = 1;
  });
  context.globalAlpha = 1;
  if (baseline?.length)
    drawBaseline(context, baseline, axis, canvas.width, floor, perToken, palette, ratio);
  drawLane(context, cols, manifest, floor + laneGap * ratio, laneHeight * ratio, palette, gap);
}

function drawBaseline(
  context: CanvasRenderingContext2D,
  sizes: Float64Array,
  axis: Axis,
  width: number,
  floor: number,
  perToken: number,
  palette: Palette,
  ratio: number,
): void {
  for (const [color, line] of [
    [palette.panel, 3.5],
    [palette.text, 1.4],
  ] as const) {
    context.strokeStyle = color;
    context.lineWidth = line * ratio;
    context.beginPath();
    sizes.forEach((size, i) => context.lineTo(axis.middle(i + 1) * width, floor - size * perToken));
    context.stroke();
  }
}

function drawLane(
  context: CanvasRenderingContext2D,
  cols: Column[],
  manifest: Manifest,
  top: number,
  height: number,
  palette: Palette,
  gap: number,
): void {
  const { read, write, uncached } = manifest.steps;
  for (const column of cols) {
    const i = column.step - 1;
    const parts = [read[i] ?? 0, write[i] ?? 0, uncached[i] ?? 0];
    const sum = parts[0] + parts[1] + parts[2];
    if (!sum) continue;
    let y = top + height;
    [palette.read, palette.write, palette.uncached].forEach((color, part) => {
      const high = (parts[part] / sum) * height;
      context.fillStyle = color;
      context.fillRect(column.from, y - high, column.to - column.from - gap, high);
      y -= high;
    });
  }
}
