/**
 * Whether a server is ready, and its end, in order: it is not ready, agents and callers are sent
 * elsewhere, those that come all the same are served, and when nothing runs
 * everything closes; dials of the last moment are refused. Another process may take the ports meanwhile; then only what
 * runs is waited for.
 *
 * @module
 */

import { Drain } from "../../net/program/drain.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { MethodHandler } from "../../proto/grpc/call.ts";
import { HealthService } from "../../proto/grpc/health.ts";

/** The actions of each step. */
export interface ShutdownSteps {
  /** Send agents and callers elsewhere; the server is not ready. */
  announce(): void;
  /** Dials and conduits that are under way. */
  load(): number;
  /**
   * Stop accepting, if new connections then wait for a process that follows.
   *
   * @returns Whether it is so; else new connections would be refused.
   */
  letGo(): boolean;
  /**
   * Accepts no more callers, and sends those elsewhere that came meanwhile.
   *
   * @returns Whether any did: a request of theirs may be on its way.
   */
  refuse(): boolean;
  /**
   * Refuses new dials so that callers ask another server: nothing that they
   * sent with the dial is lost.
   *
   * @returns Whether callers are connected: a dial of theirs may be on its way.
   */
  refuseDials(): boolean;
  /** Close everything that is left; settles when it is gone. */
  closeAll(reason: string): Promise<void>;
}

/**
 * A client that connected before another process took the ports may not have
 * sent its request yet: it gets this long.
 */
export const PASSED_ARRIVAL_MS = 1_000;

/**
 * The same without a successor: a request sent before the caller learns of the
 * shutdown is at most a round trip away.
 */
export const LAST_REQUESTS_MS = 200;

/** See the module description. */
export class Shutdown extends Drain<"draining" | "leaving" | "last"> {
  constructor(private readonly steps: ShutdownSteps, timers: Timers) {
    super(timers);
  }

  /** @param timeoutMs How long what runs may go on; 0 ends it at once. */
  begin(timeoutMs: number): void {
    if (!this.isRunning) return;
    this.phase = "draining";
    this.steps.announce();
    this.#limit(timeoutMs);
    this.loadChanged();
  }

  /** Another process has the ports. @param timeoutMs As {@linkcode begin}. */
  handedOver(timeoutMs: number): void {
    if (!this.isRunning && this.phase !== "draining") return;
    this.forgetSuccessor();
    // Again: others may have connected since.
    this.steps.announce();
    this.#leave(PASSED_ARRIVAL_MS);
    this.#limit(timeoutMs);
  }

  override loadChanged(): void {
    const isWaiting = this.phase === "draining" ||
      (this.phase === "leaving" && !this.isStepping);
    if (!isWaiting || this.awaitsSuccessor || this.steps.load() > 0) return;
    if (this.phase === "draining") {
      if (this.steps.letGo()) return this.#leave(PASSED_ARRIVAL_MS);
      if (this.steps.refuse()) return this.#leave(LAST_REQUESTS_MS);
    }
    this.#last("the server is stopping");
  }

  /** A caller that is cut off at the end has not just begun. */
  #last(reason: string): void {
    if (this.phase === "closed") return;
    this.steps.refuse();
    if (!this.steps.refuseDials()) return this.now(reason);
    this.phase = "last";
    this.stepAfter(LAST_REQUESTS_MS, () => this.now(reason));
  }

  override now(reason: string): void {
    if (this.isRunning) this.steps.announce();
    super.now(reason);
  }

  protected override close(reason: string): Promise<void> {
    return this.steps.closeAll(reason);
  }

  #limit(timeoutMs: number): void {
    if (timeoutMs === 0) return this.now("the server is stopping");
    this.limit(timeoutMs, () => {
      const end = () =>
        this.#last(`the server stopped after ${timeoutMs / 1000} s of grace`);
      if (this.phase !== "draining" || !this.steps.letGo()) return end();
      this.#leave(PASSED_ARRIVAL_MS, end);
    });
  }

  /**
   * The port accepts no more clients. @param then Called when the last ones
   * have arrived.
   */
  #leave(arrivalMs: number, then = () => this.loadChanged()): void {
    this.phase = "leaving";
    this.stepAfter(arrivalMs, then);
  }
}

// Whether a server is ready: it runs, and has an agent. The health port asks
// for it; clients of gRPC's health service receive each change.

/** Its conditions. */
export interface ReadinessConditions {
  isRunning(): boolean;
  hasAgents(): boolean;
  /** One of these may have changed. */
  changed(): void;
}

/** Reports whether the server is ready. */
export class Readiness {
  readonly #health = new HealthService();

  constructor(private readonly conditions: ReadinessConditions) {}

  /** gRPC's health service; every caller may use it. */
  get methods(): Readonly<Record<string, MethodHandler>> {
    return this.#health.methods;
  }

  /** Why the server is not ready, if it is not. */
  problem(): string | undefined {
    if (!this.conditions.isRunning()) return "the server is stopping";
    return this.conditions.hasAgents()
      ? undefined
      : "no connection to any proxy agent";
  }

  /** Called when a condition may have changed. */
  report(): void {
    this.#health.setStatus(
      "",
      this.problem() === undefined ? "SERVING" : "NOT_SERVING",
    );
    this.conditions.changed();
  }
}
