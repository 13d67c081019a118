/**
 * One target of a service's port, what has been learned about it, and whether
 * it is left out because ordinary dials of it fail.
 *
 * It lives from the first update of the catalog that names its address until
 * the first that does not. Other changes keep it, so that counts and findings
 * survive updates. Connections that go on hold it longer.
 *
 * @module
 */

import type { Ejection } from "../../catalog/model/model.ts";
import { type Target, targetKeyOf } from "../../catalog/snapshot.ts";
import { type Family, familyOf } from "./families.ts";

/** The finding of a health check. */
export type Health = "unknown" | "well" | "ill";

export class Backend {
  /**
   * What distinguishes it from others of its unit; see {@linkcode
   * targetKeyOf}.
   */
  readonly key: string;
  /**
   * The family of its address, when that is dialed from here and is neither a
   * name nor near.
   */
  readonly family: Family | undefined;
  /** The catalog's present entry. */
  target: Target;
  /** Whether it may get new connections by the catalog. */
  isUsable = false;

  /** Open connections, or UDP sessions; dials count from their beginning. */
  connections = 0;
  /** Dials that succeeded, ever. */
  connectionsTotal = 0;
  /** Dials that failed, ever. */
  failuresTotal = 0;
  bytesSent = 0;
  bytesReceived = 0;

  /** Dials that failed since the last one that did not. */
  failures = 0;
  /** The balancer avoids it before this time, if there is another. */
  ejectedUntilMs = -Infinity;
  health: Health = "unknown";
  /** What went wrong last, of a dial or a health check. */
  lastError: string | undefined;

  constructor(target: Target) {
    this.target = target;
    this.key = targetKeyOf(target);
    this.family = target.endpoint.via.kind === "direct"
      ? familyOf(target.address)
      : undefined;
  }

  /** A dial to it begins, and so may a connection or a session. */
  opened(): void {
    this.connections++;
  }

  /** One that began has ended. */
  closed(): void {
    this.connections--;
  }

  /** Whether it is left out, as long as there are others. */
  isEjected(nowMs: number): boolean {
    return nowMs < this.ejectedUntilMs;
  }

  /** A dial has failed. @returns Whether the backend is left out for that. */
  failed(
    problem: string,
    nowMs: number,
    { failures, timeMs }: Ejection,
  ): boolean {
    this.failures++;
    this.failuresTotal++;
    this.lastError = problem;
    if (failures === 0 || this.failures < failures) return false;
    const wasOut = this.isEjected(nowMs);
    this.ejectedUntilMs = nowMs + timeMs;
    return !wasOut;
  }

  /** A dial has succeeded. */
  succeeded(): void {
    this.connectionsTotal++;
    this.recovered();
  }

  /** It can be dialed. */
  recovered(): void {
    this.failures = 0;
    this.ejectedUntilMs = -Infinity;
  }
}

/** So many dials have to fail in a row. */
export const EJECTION_FAILURES = 3;

/**
 * How long the backend is then left out. If the first dial after that fails
 * too, it is left out again; if it succeeds, the backend is well.
 */
export const EJECTION_MS = 10_000;

/** The default. */
export const EJECTION: Ejection = {
  failures: EJECTION_FAILURES,
  timeMs: EJECTION_MS,
};
