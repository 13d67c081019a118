/**
 * What a parent and one of its workers say to each other.
 *
 * ```
 * parent                                worker
 *   take: sockets, held? ─────────────►  (those of its predecessor)
 *   open ─────────────────────────────►  opens its ports
 *                                     ◄─ opened: a copy of each socket; closed
 *                                     ◄─ started: which go first, or last
 *   start, hold, yield-early, yield ──►  another process takes over
 *   answer: a connection ─────────────►  says how it is
 *                                     ◄─ ask: a connection, for how all are
 *   shutdown, stop, reload ───────────►
 *   report-memory ────────────────────►
 *                                     ◄─ memory: a part; none: that was all
 *   recall: a part ───────────────────►
 * ```
 *
 * The parent has a copy of every listening socket of its workers, so what the
 * kernel has queued outlives a worker. One that finds its parent gone lets go of
 * its sockets, and ends when its connections have ended.
 *
 * At its start a process is told by a variable that it is a worker, and which.
 *
 * @module
 */

import { quietly } from "../../../platform/errors/error_code.ts";
import type { OwnGroup } from "../../../net/admin/own_group.ts";
import { parseWholeNumber } from "../../flags/go_values.ts";
import type { HandoverFields } from "../../../net/handover/packet_socket.ts";
import { UsageError } from "../../flags/usage_error.ts";

/** Messages to a worker. */
export type Order =
  /** Listening sockets that it may want. */
  | { readonly kind: "take"; readonly isHeld: boolean }
  | { readonly kind: "open" }
  /** Without keys: all, also those that it will open. */
  | { readonly kind: "start"; readonly keys?: readonly string[] }
  | { readonly kind: "hold"; readonly keys: readonly string[] }
  /** Connections to a path, which the parent accepts. */
  | { readonly kind: "serve"; readonly key: string }
  /** Nothing more is passed on to one that was reported as closed. */
  | { readonly kind: "noted" }
  /** Another worker cannot accept; then it can again. */
  | { readonly kind: "adopt" | "let-go" }
  /** How many agents, or servers, are linked to it. */
  | { readonly kind: "report" }
  | {
    readonly kind: "report-ready";
    readonly agents: number;
    /** Another process serves until it is. */
    readonly isServed: boolean;
  }
  | { readonly kind: "await-successor"; readonly ms: number }
  /** That process has the early sockets; all of them. */
  | { readonly kind: "yield-early" | "yield"; readonly pid: number }
  | { readonly kind: "successor-ended" }
  | {
    readonly kind: "shutdown";
    readonly why: string;
    /** Its sockets are kept open beyond this program. */
    readonly areKept: boolean;
  }
  | { readonly kind: "stop"; readonly reason: string }
  | { readonly kind: "reload" }
  /** The memory with which a successor continues. */
  | { readonly kind: "report-memory" }
  | { readonly kind: "recall"; readonly part: HandoverFields }
  /** The answer to health requests over HTTP. */
  | { readonly kind: "answer" };

/** Messages of a worker. */
export type Report =
  | { readonly kind: "opened"; readonly key: string; readonly isHeld: boolean }
  | { readonly kind: "closed"; readonly key: string }
  | { readonly kind: "chose"; readonly port: ChosenPort }
  | { readonly kind: "started"; readonly ports: SpecialPorts }
  | { readonly kind: "ready" }
  | { readonly kind: "linked"; readonly agents: number }
  | { readonly kind: "memory"; readonly part?: HandoverFields }
  /** HTTP: how all of them are. */
  | { readonly kind: "ask" };

/** See `Replaceable`. */
export interface SpecialPorts {
  readonly early: readonly string[];
  readonly late: readonly string[];
}

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
  /** The socket to the parent. */
  readonly descriptor: number;
  /** The program's id, if the user gave none. */
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
 * The role of this process; `undefined`: it is no worker.
 *
 * @throws {UsageError} The variable was set by hand.
 */
export function workerRole(
  environment: (name: string) => string | undefined,
): WorkerRole | undefined {
  const text = environment(VARIABLE);
  if (text === undefined || own !== undefined) return own;
  // Programs that it runs are no workers.
  Deno.env.delete(VARIABLE);
  const role = quietly((): WorkerRole | null => JSON.parse(text));
  if (parseWholeNumber(String(role?.descriptor))! > 2) return own = role!;
  throw new UsageError(
    `Cannot use $${VARIABLE}: only a tunnel with --workers sets it, for ` +
      "processes of its own; unset it",
  );
}

/**
 * The name of one of several servers behind one address. The first one keeps
 * the program's own, so that it is the same server with any number of workers.
 */
export function workerServerId(
  serverId: string,
  role: Pick<WorkerRole, "index"> | undefined,
): string {
  return role === undefined || role.index === 0
    ? serverId
    : `${serverId}-w${role.index}`;
}
