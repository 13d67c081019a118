/**
 * The end of an agent, in order: tell the servers, serve what runs and what
 * still comes (a sole agent must), leave when nothing runs and all servers have
 * read that it goes.
 *
 * @module
 */

import { SuccessorWait } from "../net/handover/successor_wait.ts";
import type { Timer, Timers } from "../proto/sync/clock.ts";

/** A dial that a server sent before it has read that the agent goes is here by then. */
export const QUIET_MS = 250;

/** A server that has not read it for so long is silent, and not waited for. */
export const TOLD_MS = 5_000;

/** What has to be done at each step. */
interface DrainSteps {
  /** Tell every server that this agent is going. */
  announce(): void;
  /** Dials and conduits that are under way. */
  load(): number;
  /** Whether conduits may still come: a server is linked. */
  isLinked(): boolean;
  /** Whether all linked servers have read what was announced. */
  areTold(): boolean;
  /** Close everything. */
  close(reason: string): void;
}

/** Idempotent. */
export class AgentDrain {
  readonly #finished = Promise.withResolvers<void>();
  #state: "running" | "draining" | "closed" = "running";
  #deadline: Timer | undefined;
  #quiet: Timer | undefined;
  #beganMs = 0;
  readonly #successor: SuccessorWait;

  constructor(
    private readonly steps: DrainSteps,
    private readonly timers: Timers,
  ) {
    this.#successor = new SuccessorWait(timers, () => {
      if (this.#quiet === undefined) this.loadChanged();
    });
  }

  /** It was asked to end, or another process has taken its place. */
  get isDraining(): boolean {
    return this.#state !== "running";
  }

  /** Settles when everything is closed. */
  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  /** @param timeoutMs How long what runs may go on; 0 ends it at once. */
  begin(timeoutMs: number): void {
    if (this.#state !== "running") return;
    this.#state = "draining";
    this.#beganMs = this.timers.now();
    this.steps.announce();
    if (timeoutMs === 0) return this.now("the agent is stopping");
    this.#deadline = this.timers.after(
      timeoutMs,
      () => this.now(`the agent stopped after ${timeoutMs / 1000} s of grace`),
    );
    this.loadChanged();
  }

  /** It does not end before, unless its time is over. @param ms From now on. */
  awaitSuccessor(ms: number): void {
    this.#successor.set(ms);
    if (this.#quiet === undefined) this.loadChanged();
  }

  /** To be called whenever the load has changed. */
  loadChanged(): void {
    if (this.#state !== "draining") return;
    this.#quiet?.cancel();
    this.#quiet = undefined;
    if (this.steps.load() > 0) return;
    this.#quiet = this.timers.after(
      this.steps.isLinked() ? QUIET_MS : 0,
      () => {
        this.#quiet = undefined;
        const tookMs = this.timers.now() - this.#beganMs;
        if (tookMs < TOLD_MS && !this.steps.areTold()) this.loadChanged();
        else if (!this.#successor.isOn) this.now("the agent has drained");
      },
    );
  }

  /** Ends without waiting any longer. */
  now(reason: string): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#deadline?.cancel();
    this.#quiet?.cancel();
    this.#successor.set(0);
    this.steps.close(reason);
    this.#finished.resolve();
  }
}
