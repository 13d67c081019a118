/**
 * Leaves out backends that fail, by what is seen of ordinary dials.
 *
 * @module
 */

import type { Ejection } from "../../catalog/model/model.ts";
import type { Backend } from "./backend.ts";

/** So many dials have to fail in a row. */
export const EJECTION_FAILURES = 3;

/**
 * And the backend is left out for so long. The first dial after it that fails
 * too is enough to be left out again; one that succeeds ends the matter.
 */
export const EJECTION_MS = 10_000;

/** Where nobody says otherwise. */
export const EJECTION: Ejection = {
  failures: EJECTION_FAILURES,
  timeMs: EJECTION_MS,
};

/** A dial has failed. @returns Whether the backend is left out because of it. */
export function noteFailure(
  backend: Backend,
  problem: string,
  nowMs: number,
  { failures, timeMs }: Ejection = EJECTION,
): boolean {
  backend.failures++;
  backend.failuresTotal++;
  backend.lastError = problem;
  if (failures === 0 || backend.failures < failures) return false;
  const wasOut = isEjected(backend, nowMs);
  backend.ejectedUntilMs = nowMs + timeMs;
  return !wasOut;
}

/** A dial has succeeded. */
export function noteSuccess(backend: Backend): void {
  backend.connectionsTotal++;
  noteRecovery(backend);
}

/** It can be dialed. */
export function noteRecovery(backend: Backend): void {
  backend.failures = 0;
  backend.ejectedUntilMs = -Infinity;
}

/** Whether it is left out, as long as there are others. */
export function isEjected(backend: Backend, nowMs: number): boolean {
  return nowMs < backend.ejectedUntilMs;
}
