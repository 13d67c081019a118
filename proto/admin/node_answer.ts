/**
 * What a server knows of nodes: those that joined, and those that are linked
 * without having joined (certificates of another CA, Konnectivity's agents).
 *
 * @module
 */

import type { EventInfo } from "./list_answers.ts";
import type { LinkInfo, Warning } from "./status_answer.ts";

/** How connections may be sorted: the words of `?sort=`. */
export const CONDUIT_SORTS = ["rate", "bytes", "age", "idle", "queue"] as const;
export type ConduitSort = typeof CONDUIT_SORTS[number];

/** One node in a list. */
export interface NodeSummary {
  readonly name: string;
  readonly state: "online" | "offline" | "pending" | "revoked";
  /** Since when it is in this state, where that is known. */
  readonly since?: string | undefined;
  /** Why it is offline, or was revoked. */
  readonly reason?: string | undefined;
  /** Joined, or linked as something else. */
  readonly isJoined: boolean;
  readonly version?: string | undefined;
  /** `HOST:PORT` where its newest link comes from now. */
  readonly address?: string | undefined;
  readonly links: number;
  readonly conduits: number;
  readonly toTargetRate: number;
  readonly fromTargetRate: number;
  readonly roundTripMs?: number | undefined;
  /** Linked to this server, or to another one that it knows. */
  readonly servers: readonly string[];
  readonly certificateUntil?: string | undefined;
  /** Two machines use its identity. */
  readonly isDuplicate?: boolean | undefined;
  /** Its worst problem. */
  readonly problem?: string | undefined;
}

/**
 * `GET /v1/nodes`, with `?state=online`, `?limit=`, `?after=NAME`: sorted by
 * name; what needs attention is told by `state` and `problem`.
 */
export interface NodesAnswer {
  readonly nodes: readonly NodeSummary[];
  /** The number of all, whatever the limit. */
  readonly total: number;
  /** The machine's clock, when the answer was made. */
  readonly now?: string | undefined;
}

/** `GET /v1/nodes/NAME` */
export interface NodeDetail extends NodeSummary {
  /** The machine's clock, when the answer was made. */
  readonly now?: string | undefined;
  readonly joinedAt?: string | undefined;
  readonly joinedFrom?: string | undefined;
  /** The identifiers that it was granted, and those that it announces. */
  readonly grants: readonly string[];
  readonly identifiers: readonly string[];
  readonly linkDetails: readonly LinkInfo[];
  /** Its announced services. */
  readonly services: readonly {
    readonly name: string;
    readonly problem?: string | undefined;
  }[];
  readonly warnings: readonly Warning[];
  /** The biggest ones; at most fifty. */
  readonly conduitDetails: readonly ConduitInfo[];
  /** The last ones, newest first. */
  readonly events: readonly EventInfo[];
}

// Facts about one tunneled connection.

/** One conduit, as the program that is asked sees it. */
export interface ConduitInfo {
  /** The same in the logs, audits and answers of all programs that it passes. */
  readonly id: string;
  readonly state: "dialing" | "open" | "closing";
  /** The caller that requested it. */
  readonly caller: string;
  /** `HOST:PORT`, or a socket's path. */
  readonly from?: string | undefined;
  readonly node?: string | undefined;
  /** Another server that has that node's agent. */
  readonly forwardedTo?: string | undefined;
  readonly service?: string | undefined;
  /** Such as `tcp 10.0.0.7:5432`. */
  readonly target: string;
  readonly startedAt: string;
  readonly ageMs: number;
  /** How long its dial took. */
  readonly dialMs?: number | undefined;
  readonly toTargetBytes: number;
  readonly fromTargetBytes: number;
  /** Over the last ten seconds. */
  readonly toTargetRate: number;
  readonly fromTargetRate: number;
  /** The id of the link that carries it. */
  readonly roundTripMs?: number | undefined;
  /**
   * The window that the other end may still use, and the bytes that wait here.
   */
  readonly windowBytes?: number | undefined;
  readonly queuedBytes?: number | undefined;
  /** Why nothing moves, such as `the caller does not read`; absent: it may. */
  readonly waitsFor?:
    | "caller"
    | "target"
    | "link"
    | "dial"
    | "nothing"
    | undefined;
  /** Since anything moved. */
  readonly idleMs: number;
}

/**
 * `GET /v1/conduits`, with `?node=`, `?caller=`, `?target=`, `?service=`,
 * `?sort=rate|bytes|age|idle|queue` and `?limit=`; the biggest of `sort` first,
 * `rate` and 100 unless said.
 */
export interface ConduitsAnswer {
  readonly conduits: readonly ConduitInfo[];
  /** The number of all that match, whatever the limit. */
  readonly total: number;
}
