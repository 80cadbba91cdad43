/* The components that pages ask for by name: <ctx-island data-name="replay">. */
import { defineIslands } from './web/island';

defineIslands({
  replay: () => import('./replay/Replay.svelte'),
  diff: () => import('./replay/diff/Diff.svelte'),
  review: () => import('./reviews/Review.svelte'),
  chart: () => import('./web/chart/Chart.svelte'),
  scatter: () => import('./web/chart/ScatterChart.svelte'),
  lab: () => import('./lab/Lab.svelte'),
  simulation: () => import('./lab/simulation/Simulation.svelte'),
});
