/**
 * Looks by the clock: what is left when nobody tells any more that there is
 * something to do, and no descriptor is left for somebody who would. Late is
 * better than never.
 *
 * @module
 */

import type { Waiter } from "./poller.ts";

/** How long a descriptor may be ready before anybody looks. */
export const BLIND_LOOK_MS = 10;

/** See the module description. */
export class BlindWaiter implements Waiter {
  readonly kind = "blind";
  readonly #onReady: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(onReady: () => void) {
    this.#onReady = onReady;
  }

  wait(): boolean {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#onReady();
    }, BLIND_LOOK_MS);
    return true;
  }

  close(): Promise<void> {
    clearTimeout(this.#timer);
    return Promise.resolve();
  }
}
