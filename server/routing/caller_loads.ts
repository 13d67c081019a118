/**
 * How many dials and conduits there are of each caller of which none may have too
 * many: nodes, and other servers.
 *
 * @module
 */

import { type DialAnswer, watchedDial } from "../../proto/link/dial_handler.ts";
import type { PacketObserver, PendingDial } from "../../proto/link/link.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { CallerDial } from "./dialer.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import { transfer } from "../../proto/transfer/transfer.ts";

/** What every frontend needs that serves callers by `/ProxyService/Proxy`. */
export interface CallerTools {
  readonly timers: Timers;
  readonly observer: PacketObserver;
  readonly messageBytesMax: number;
  dial(request: CallerDial, answer: DialAnswer): PendingDial;
}

/** See the module description. */
export class CallerLoads {
  readonly #loads = new Map<string, number>();
  /** For conduits that were dialed and are not joined yet. */
  readonly #callers = new WeakMap<Conduit, string>();

  of(caller: string): number {
    return this.#loads.get(caller) ?? 0;
  }

  /** Makes a dial of a caller's, which counts until it is over. */
  dial(
    caller: string,
    answer: DialAnswer,
    dial: (answer: DialAnswer) => PendingDial,
  ): PendingDial {
    const leave = this.#enter(caller);
    return watchedDial(answer, ({ conduit }) => {
      if (conduit !== undefined) this.#callers.set(conduit, caller);
      leave();
    }, dial);
  }

  /**
   * Joins the caller with the dialed conduit, which counts until both are
   * closed.
   */
  async join(conduit: Conduit, target: Conduit): Promise<void> {
    const caller = this.#callers.get(target);
    const leave = caller === undefined ? () => {} : this.#enter(caller);
    await transfer(conduit, target);
    leave();
  }

  /** @returns To be called when it is over. */
  #enter(caller: string): () => void {
    this.#loads.set(caller, this.of(caller) + 1);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      const left = this.of(caller) - 1;
      if (left === 0) this.#loads.delete(caller);
      else this.#loads.set(caller, left);
    };
  }
}
