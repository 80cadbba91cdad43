/* <ctx-island data-name="replay" data-props="replay-props">: what the server drew inside stays until
   the island is ready, and comes back when the element leaves the page. */
import type { Component } from 'svelte';

type Island = { default: Component<any> };

const islands: Record<string, () => Promise<Island>> = {
  replay: () => import('./islands/replay/Replay.svelte'),
  diff: () => import('./islands/diff/Diff.svelte'),
  review: () => import('./islands/review/Review.svelte'),
  chart: () => import('./chart/Chart.svelte'),
  lab: () => import('./islands/lab/Lab.svelte'),
  simulation: () => import('./islands/simulation/Simulation.svelte'),
  scatter: () => import('./chart/ScatterChart.svelte'),
};

class IslandElement extends HTMLElement {
  #leave?: () => void;

  async connectedCallback(): Promise<void> {
    const load = islands[this.dataset.name ?? ''];
    const props = document.getElementById(this.dataset.props ?? '')?.textContent;
    if (!load || !props) return;
    try {
      const [{ mount, unmount }, island] = await Promise.all([import('svelte'), load()]);
      if (!this.isConnected) return;
      const drawnByServer = [...this.childNodes];
      this.replaceChildren();
      const app = mount(island.default, { target: this, props: JSON.parse(props) });
      this.#leave = () => {
        void unmount(app);
        this.replaceChildren(...drawnByServer);
      };
    } catch (error) {
      this.dataset.failed = '';
      this.querySelector('[data-island-problem]')?.removeAttribute('hidden');
      throw error;
    }
  }

  disconnectedCallback(): void {
    this.#leave?.();
  }
}

customElements.define('ctx-island', IslandElement);
