/* <ctx-island data-name="replay" data-props="replay-props">: what the server drew inside stays until
   the island is ready, and comes back when the element leaves the page. */
import type { Component } from 'svelte';

type Island = { default: Component<never> };
type Islands = Record<string, () => Promise<Island>>;

let islands: Islands = {};

export class IslandElement extends HTMLElement {
  #leave?: () => void;
  #round = 0;

  async connectedCallback(): Promise<void> {
    const load = islands[this.dataset.name ?? ''];
    if (!load) return;
    const round = ++this.#round;
    try {
      const [{ mount, unmount }, island] = await Promise.all([import('svelte'), load()]);
      // Only now: where a page is brought up to date, the props come after the element.
      const props = document.getElementById(this.dataset.props ?? '')?.textContent;
      if (!props || !this.isConnected || round !== this.#round) return;
      const drawnByServer = [...this.childNodes];
      this.replaceChildren();
      const app = mount(island.default as Component, { target: this, props: JSON.parse(props) });
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
    this.#leave = undefined;
  }

  /** Draws it with the props that are there now. */
  renew(): void {
    this.disconnectedCallback();
    void this.connectedCallback();
  }
}

/** Makes the element known, with every component that a page may ask for by name. */
export function defineIslands(known: Islands): void {
  islands = known;
  customElements.define('ctx-island', IslandElement);
}
