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
 * ```
 *
 * The parent has a copy of every listening socket of its workers, so what the
 * kernel has queued outlives a worker. One that finds its parent gone lets go of
 * its sockets, and ends when what it carries has ended.
 *
 * @module
 */

import type { ChosenPort } from "./worker_role.ts";

/** To a worker. */
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
  /** HTTP: how it is. */
  | { readonly kind: "answer" };

/** Of a worker. */
export type Report =
  | { readonly kind: "opened"; readonly key: string; readonly isHeld: boolean }
  | { readonly kind: "closed"; readonly key: string }
  | { readonly kind: "chose"; readonly port: ChosenPort }
  | { readonly kind: "started"; readonly ports: SpecialPorts }
  | { readonly kind: "ready" }
  | { readonly kind: "linked"; readonly agents: number }
  /** HTTP: how all of them are. */
  | { readonly kind: "ask" };

/** See `Replaceable`. */
export interface SpecialPorts {
  readonly early: readonly string[];
  readonly late: readonly string[];
}
