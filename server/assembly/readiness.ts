/**
 * Whether a server is ready: it runs, and has an agent. The health port asks
 * for it; clients of gRPC's health service receive each change.
 *
 * @module
 */

import type { MethodHandler } from "../../proto/grpc/call.ts";
import { HealthService } from "../../proto/grpc/health.ts";

/** What it depends on. */
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

  /** gRPC's health service; anybody may call it. */
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

  /** To be called when a condition may have changed. */
  report(): void {
    this.#health.setStatus(
      "",
      this.problem() === undefined ? "SERVING" : "NOT_SERVING",
    );
    this.conditions.changed();
  }
}
