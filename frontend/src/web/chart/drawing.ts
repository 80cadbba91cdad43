/* A chart as uPlot takes it. */
import type uPlot from 'uplot';
import { placeOf, stacked, unitsOf, type ChartProps, type Series, type Unit } from './chart';
import { fill, lookOf, type Palette } from './palette';
import { isDays, isThisYear, showX, tick } from './values';

type Plot = typeof uPlot;
const font = '11px system-ui, sans-serif';

/** Columns for uPlot, and the order of the series: the last is drawn first, so that the first hides the others
    where they meet, and no part of a stack the one below it. */
export function columns(props: ChartProps): { data: (number | null)[][]; order: number[] } {
  const values = props.stack ? stacked(props.series) : props.series.map((one) => one.values);
  const order = props.series.map((_, i) => i).reverse();
  return { data: [props.x.values, ...order.map((i) => values[i])], order };
}

/** From zero, so that a height is a size; below it only where a value is. A flat nothing gets a scale too. */
export function range(least: number | null, most: number | null, unit: Unit): [number, number] {
  const high = Math.max(0, most ?? 0);
  const low = Math.min(0, least ?? 0);
  if (high === 0 && low === 0) return [0, unit === 'microusd' ? 1_000_000 : 1];
  const top = unit === 'share' && high <= 1 ? Math.min(1, high * 1.08) : high * 1.08;
  return [low * 1.08, top];
}

/** The narrowest distance of two neighbors: what a bar may be wide. */
export function stepOf(values: readonly number[]): number {
  let least = Infinity;
  for (let i = 1; i < values.length; i++) least = Math.min(least, values[i] - values[i - 1]);
  return Number.isFinite(least) && least > 0 ? least : 1;
}

/** Bars of several series stand beside each other. */
function bars(Plot: Plot, props: ChartProps, series: Series): uPlot.Series.PathBuilder {
  const beside = props.stack ? [series] : props.series.filter((one) => one.kind === 'bar');
  const step = stepOf(props.x.values);
  const wide = (step * 0.72) / beside.length;
  const at = beside.indexOf(series);
  const unit = 1 as uPlot.Series.BarsPathBuilderFacetUnit;
  return Plot.paths.bars!({
    disp: {
      x0: { unit, values: () => props.x.values.map((x) => x - step * 0.36 + at * wide) },
      size: { unit, values: () => props.x.values.map(() => wide) },
    },
  });
}

const FEW = 40; // points: more than that are a line

/** Values with nothing on either side: no line shows them. */
export function alone(values: readonly (number | null)[]): number[] {
  const known = (i: number) => values[i] !== null && values[i] !== undefined;
  return values.flatMap((_, i) => (known(i) && !known(i - 1) && !known(i + 1) ? [i] : []));
}

function seriesOf(Plot: Plot, props: ChartProps, index: number, palette: Palette): uPlot.Series {
  const series = props.series[index];
  const look = lookOf(palette, placeOf(props.series, index), series.dash);
  const filled = series.kind === 'bar' || series.kind === 'area';
  const ratio = devicePixelRatio || 1;
  const points: uPlot.Series.Points = {
    size: series.kind === 'points' ? 7 : 5,
    fill: series.dash ? palette.panel : look.color,
    stroke: look.color,
  };
  points.show = series.kind === 'points' || (series.kind !== 'bar' && series.values.length <= FEW);
  if (series.kind === 'line' || series.kind === 'area')
    points.filter = (_plot, _index, show) => (show ? null : alone(props.series[index].values));
  return {
    label: series.label,
    scale: series.unit,
    stroke: look.color,
    width: series.kind === 'bar' ? 0 : 1.75,
    dash: series.kind === 'line' || !filled ? look.dash : [],
    points,
    ...(filled
      ? { fill: (plot: uPlot) => fill(plot.ctx, look, palette.panel, ratio) as never }
      : {}),
    ...(series.kind === 'points' ? { paths: () => null } : {}),
    ...(series.kind === 'bar' ? { paths: bars(Plot, props, series) } : {}),
  };
}

/** Numbered lines at what happened; the list below says what it was. */
function drawMarks(plot: uPlot, props: ChartProps, palette: Palette): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio || 1;
  ctx.save();
  ctx.lineWidth = ratio;
  ctx.font = `${10 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = 'top';
  (props.marks ?? []).forEach((mark, i) => {
    const x = Math.round(plot.valToPos(mark.x, 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) return;
    ctx.strokeStyle = ctx.fillStyle = palette.mark;
    ctx.setLineDash([3 * ratio, 3 * ratio]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const text = String(i + 1);
    const wide = ctx.measureText(text).width + 6 * ratio;
    ctx.fillRect(x - wide / 2, bbox.top - 1, wide, 14 * ratio);
    ctx.fillStyle = palette.panel;
    ctx.textAlign = 'center';
    ctx.fillText(text, x, bbox.top + 2 * ratio);
  });
  ctx.restore();
}

function axis(unit: Unit, side: 1 | 3, palette: Palette): uPlot.Axis {
  return {
    scale: unit,
    side,
    font,
    stroke: palette.muted,
    size: 52,
    gap: 4,
    values: (_plot, splits) => splits.map((value) => (value === null ? '' : tick(value, unit))),
    incrs:
      unit === 'count' || unit === 'tokens' || unit === 'ms'
        ? [1, 2, 5]
            .flatMap((n) => Array.from({ length: 12 }, (_, power) => n * 10 ** power))
            .sort((a, b) => a - b)
        : undefined,
    grid: { show: side === 3, stroke: palette.grid, width: 1 },
    ticks: { show: false },
  };
}

/** Half a bar before the first and after the last; the marks are in sight too. */
export function reach(props: ChartProps): [number, number] {
  const { values } = props.x;
  const marks = (props.marks ?? []).map((mark) => mark.x);
  const aside =
    props.series.some((one) => one.kind === 'bar') || values.length === 1 ? stepOf(values) / 2 : 0;
  return [
    Math.min(values[0] - aside, ...marks),
    Math.max(values[values.length - 1] + aside, ...marks),
  ];
}

export function optionsOf(
  Plot: Plot,
  props: ChartProps,
  palette: Palette,
  width: number,
  height: number,
): uPlot.Options {
  const days = isDays(props.x.values);
  const units = unitsOf(props.series);
  const scales: uPlot.Scales = { x: { time: props.x.kind === 'time', range: () => reach(props) } };
  for (const unit of units)
    scales[unit] = { range: (_plot, least, most) => range(least, most, unit) };
  const x: uPlot.Axis = {
    font,
    stroke: palette.muted,
    size: 24,
    gap: 3,
    space: props.x.kind !== 'time' ? 48 : isThisYear(props.x.values[0] ?? Date.now()) ? 64 : 96,
    grid: { show: false },
    ticks: { stroke: palette.grid, width: 1, size: 4 },
    ...(days
      ? { incrs: [1, 2, 7, 14, 28, 91, 182, 364, 728, 1820, 3640].map((n) => n * 86_400_000) }
      : {}),
    ...(props.x.kind === 'step'
      ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000] }
      : {}),
    ...(props.x.kind !== 'time' || days
      ? {
          values: (_plot: uPlot, splits: number[]) =>
            splits.map((value) => showX(value, props.x.kind, days)),
        }
      : {}),
  };
  return {
    width,
    height,
    ms: 1,
    legend: { show: false },
    scales,
    ...(days ? { tzDate: (ms: number) => Plot.tzDate(new Date(ms), 'Etc/UTC') } : {}),
    padding: [8, units.length > 1 ? 0 : 32, 0, 0], // at the right the last label has its half beside the axis
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 8 } },
    axes: [x, ...units.slice(0, 2).map((unit, i) => axis(unit, i ? 1 : 3, palette))],
    series: [{}, ...columns(props).order.map((i) => seriesOf(Plot, props, i, palette))],
    hooks: { draw: [(plot) => drawMarks(plot, props, palette)] },
  };
}
