/* The address and the title of the page, and its places in the browser's history. */

const least = 150; // ms between two changes: browsers refuse more than some 100 in 30 s

export class AddressBar {
  #written = 0;
  #writing: ReturnType<typeof setTimeout> | undefined;

  /** A jump gets a place of its own, at once. Otherwise the address of then takes the place of the
      present one, so that a scrub is one movement. */
  write(address: () => string, name: () => void, jump: boolean): void {
    clearTimeout(this.#writing);
    if (jump) {
      history.pushState(null, '', address());
      name();
      return;
    }
    const wait = Math.max(0, least - (performance.now() - this.#written));
    this.#writing = setTimeout(() => {
      this.#written = performance.now();
      history.replaceState(null, '', address());
      name();
    }, wait);
  }
}
