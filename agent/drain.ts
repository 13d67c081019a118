/**
 * The end of an agent, in order: tell the servers, serve what runs and what
 * still comes (a sole agent must), leave when nothing runs and all servers have
 * read that it goes.
 *
 * @module
 */

import { Drain } from "../net/program/drain.ts";
import type { Timers } from "../proto/sync/clock.ts";

/** A dial that a server sent before it has read that the agent goes is here by then. */
export const QUIET_MS = 250;

/**
 * A server that has not read it after this time is silent, and is not waited
 * for.
 */
export const TOLD_MS = 5_000;

/** The actions of each step. */
interface DrainSteps {
  /** Tell every server that this agent is going. */
  announce(): void;
  /** Dials and conduits that are under way. */
  load(): number;
  /** Whether conduits may still come: a server is linked. */
  isLinked(): boolean;
  /** Whether all linked servers have read the announcement. */
  areTold(): boolean;
  /** Close everything; settles when it is gone. */
  close(reason: string): Promise<void>;
}

/** See the module description. */
export class AgentDrain extends Drain<"draining"> {
  #beganMs = 0;

  constructor(private readonly steps: DrainSteps, timers: Timers) {
    super(timers);
  }

  /** @param timeoutMs How long what runs may go on; 0 ends it at once. */
  begin(timeoutMs: number): void {
    if (!this.isRunning) return;
    this.phase = "draining";
    this.#beganMs = this.timers.now();
    this.steps.announce();
    if (timeoutMs === 0) return this.now("the agent is stopping");
    this.limit(
      timeoutMs,
      () => this.now(`the agent stopped after ${timeoutMs / 1000} s of grace`),
    );
    this.loadChanged();
  }

  override loadChanged(): void {
    if (this.phase !== "draining") return;
    this.stepAfter();
    if (this.steps.load() > 0 || this.awaitsSuccessor) return;
    this.stepAfter(this.steps.isLinked() ? QUIET_MS : 0, () => {
      const tookMs = this.timers.now() - this.#beganMs;
      if (tookMs < TOLD_MS && !this.steps.areTold()) this.loadChanged();
      else this.now("the agent has drained");
    });
  }

  protected override close(reason: string): Promise<void> {
    return this.steps.close(reason);
  }
}
