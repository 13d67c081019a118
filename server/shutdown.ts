/**
 * The end of a server, in order: not ready, no new callers, wait for what runs,
 * then everything goes.
 *
 * @module
 */

import type { Timer, Timers } from "../proto/sync/clock.ts";

/** What has to be done at each step. */
export interface ShutdownSteps {
  /** Turn new callers away; from here on the server is not ready. */
  refuseCallers(): void;
  /** Dials and conduits that are under way. */
  load(): number;
  /** Close everything that is left; settles when it is gone. */
  closeAll(reason: string): Promise<void>;
}

/** See the module description. Idempotent. */
export class Shutdown {
  readonly #steps: ShutdownSteps;
  readonly #timers: Timers;
  readonly #finished = Promise.withResolvers<void>();
  #state: "running" | "draining" | "closing" = "running";
  #deadline: Timer | undefined;

  constructor(steps: ShutdownSteps, timers: Timers) {
    this.#steps = steps;
    this.#timers = timers;
  }

  get isRunning(): boolean {
    return this.#state === "running";
  }

  /** Settles when everything is closed. */
  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  /** @param timeoutMs How long what runs may go on; 0 ends it at once. */
  begin(timeoutMs: number): void {
    if (this.#state !== "running") return;
    this.#state = "draining";
    this.#steps.refuseCallers();
    if (timeoutMs === 0) return this.now("the server is stopping");
    this.#deadline = this.#timers.after(
      timeoutMs,
      () => this.now(`the server stopped after ${timeoutMs / 1000} s of grace`),
    );
    this.loadChanged();
  }

  /** To be called whenever the load may have become 0. */
  loadChanged(): void {
    if (this.#state === "draining" && this.#steps.load() === 0) {
      this.now("the server is stopping");
    }
  }

  /** Ends without waiting any longer. */
  now(reason: string): void {
    if (this.#state === "closing") return;
    if (this.#state === "running") this.#steps.refuseCallers();
    this.#state = "closing";
    this.#deadline?.cancel();
    this.#steps.closeAll(reason).then(
      this.#finished.resolve,
      this.#finished.reject,
    );
  }
}
