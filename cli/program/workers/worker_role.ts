/**
 * What a process is told that is one of several workers of one program, by its
 * parent and at its start.
 *
 * @module
 */

import type { OwnGroup } from "../../../net/admin/own_group.ts";
import { parseWholeNumber } from "../../flags/go_values.ts";
import { UsageError } from "../../flags/usage_error.ts";

/** Set by the parent alone; no flag has this name. */
const VARIABLE = "TUNNEL_AS_WORKER";

/** A port that the system has chosen for the first worker. */
export interface ChosenPort {
  readonly kind: "tcp" | "udp";
  readonly hostname: string;
  readonly port: number;
}

export interface WorkerRole
  extends Pick<OwnGroup, "index" | "count" | "health"> {
  /** Where the parent is heard. */
  readonly descriptor: number;
  /** Of the whole program, where its user has given it no name. */
  readonly id: string;
  /** No other worker runs yet: its addresses must be free, and it serves at once. */
  readonly isFirst: boolean;
  readonly chosen: readonly ChosenPort[];
}

/** The environment of a child that is to be a worker. */
export function workerEnvironment(role: WorkerRole): Record<string, string> {
  return { [VARIABLE]: JSON.stringify(role) };
}

let own: WorkerRole | undefined;

/**
 * The role of this process; `undefined`: it is nobody's worker.
 *
 * @throws {UsageError} Somebody has set the variable by hand.
 */
export function workerRole(
  environment: (name: string) => string | undefined,
): WorkerRole | undefined {
  const text = environment(VARIABLE);
  if (text === undefined || own !== undefined) return own;
  // Programs that it runs are no workers.
  Deno.env.delete(VARIABLE);
  try {
    const role = JSON.parse(text) as WorkerRole;
    if (parseWholeNumber(String(role.descriptor))! > 2) return own = role;
  } catch {
    // Said below.
  }
  throw new UsageError(
    `Cannot use $${VARIABLE}: only a tunnel with --workers sets it, for ` +
      "processes of its own; unset it",
  );
}

/** In each line of a worker's log. */
export function workerFields(
  role: WorkerRole | undefined,
): { readonly fields?: { readonly worker: number } } {
  return role === undefined ? {} : { fields: { worker: role.index } };
}

/**
 * The name of one of several servers behind one address. The first one keeps the
 * program's own, so it is the same server however many workers there are.
 */
export function workerServerId(
  serverId: string,
  role: Pick<WorkerRole, "index"> | undefined,
): string {
  return role === undefined || role.index === 0
    ? serverId
    : `${serverId}-w${role.index}`;
}
