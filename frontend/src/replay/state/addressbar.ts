/* The address and the title of the page, and its places in the browser's history. */
import { Settled } from './settled';

export class AddressBar {
  #settled = new Settled(); // browsers refuse more than some 100 changes in 30 s

  /** A jump gets a place of its own, at once. Otherwise the address of then takes the place of the
      present one, so that a scrub is one movement. */
  write(address: () => string, name: () => void, jump: boolean): void {
    if (jump) {
      this.#settled.cancel();
      history.pushState(null, '', address());
      name();
      return;
    }
    this.#settled.run(() => {
      history.replaceState(null, '', address());
      name();
    });
  }
}
