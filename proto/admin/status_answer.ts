/**
 * What a program reports about itself at a glance: first what needs attention,
 * then its parts.
 *
 * @module
 */

import type { ConduitInfo } from "./node_answer.ts";

/** Something that an operator should look at although the program works. */
export interface Warning {
  /** A stable code that `tunnel explain` knows. */
  readonly code?: string | undefined;
  readonly severity: "error" | "warning" | "notice";
  /** One sentence: what was seen, what it means, what to do. */
  readonly message: string;
  /** Since when, where that is known. */
  readonly since?: string | undefined;
  /** The node that it concerns. */
  readonly node?: string | undefined;
}

/** Which program it is. */
export interface ProgramInfo {
  readonly program: "server" | "agent" | "proxy";
  /** Server id, agent id, or name of the proxy's node. */
  readonly id: string;
  /** The machine's own name; servers. */
  readonly host?: string | undefined;
  readonly version: string;
  readonly pid: number;
  readonly startedAt: string;
  /** The machine's clock, when the answer was made. */
  readonly now: string;
  readonly isReady: boolean;
  readonly isDraining: boolean;
  /** The number of this worker, from 0, when there are several. */
  readonly worker?: number | undefined;
  /** And of how many. */
  readonly workers?: number | undefined;
  /** The ports by purpose: `agents`, `frontend`, `health`, `admin` … */
  readonly addresses: Readonly<Record<string, string>>;
  readonly residentBytes?: number | undefined;
  readonly cpuSeconds?: number | undefined;
}

/** What passes, at present and in all. Rates are of the last ten seconds. */
export interface Traffic {
  readonly conduits: number;
  readonly pendingDials: number;
  readonly toTargetBytes: number;
  readonly fromTargetBytes: number;
  readonly toTargetRate: number;
  readonly fromTargetRate: number;
  /** Dials a second. */
  readonly dialRate: number;
  readonly failedDials: number;
  /** Median and 99th percentile of successful dials of the last minutes. */
  readonly dialP50Ms?: number | undefined;
  readonly dialP99Ms?: number | undefined;
}

/** What expires. */
export interface Expiry {
  /** Such as `frontend certificate`, `certificate of node edge-7`, `token t3`. */
  readonly what: string;
  readonly at: string;
  /** What renews it, or that nothing does. */
  readonly renewal: "by itself" | "by hand";
}

/** A link as its server or its agent sees it. */
export interface LinkInfo {
  /** An id of this process; stays the same while the link lives. */
  readonly id: string;
  /** On a server: the agent's; on an agent: the server's. */
  readonly peer: string;
  readonly carrier: "streams" | "packets";
  /** `HOST:PORT` of the other end. */
  readonly address: string;
  readonly since: string;
  readonly software: string;
  readonly state: "linked" | "draining" | "still" | "connecting" | "waiting";
  readonly roundTripMs?: number | undefined;
  /** Since anything last arrived. */
  readonly silentMs?: number | undefined;
  readonly conduits: number;
  readonly bulkConduits: number;
  readonly toTargetRate?: number | undefined;
  readonly fromTargetRate?: number | undefined;
  /** Why it is not linked, or slow. */
  readonly problem?: string | undefined;
  /** On an agent: until the next attempt, and how many failed in a row. */
  readonly nextAttemptMs?: number | undefined;
  readonly failures?: number | undefined;
}

/** `GET /v1/status` */
export interface StatusAnswer {
  readonly program: ProgramInfo;
  /** The worst first. */
  readonly warnings: readonly Warning[];
  readonly traffic: Traffic;
  /** What expires next, the soonest first; at most ten. */
  readonly expiries: readonly Expiry[];
  /** Servers: nodes that are counted; see `/v1/nodes` for each. */
  readonly nodes?: {
    readonly online: number;
    readonly offline: number;
    readonly pending: number;
    readonly revoked: number;
    readonly links: number;
    /** Offline ones, the latest gone first; at most twenty. */
    readonly lastGone: readonly {
      readonly name: string;
      readonly since?: string | undefined;
      readonly reason?: string | undefined;
    }[];
    /** The slowest online nodes; at most five, with the reason. */
    readonly slowest: readonly {
      readonly name: string;
      readonly roundTripMs?: number | undefined;
      readonly why: string;
      readonly conduits?: number | undefined;
      /** The biggest connections; at most five. */
      readonly callers?: readonly string[] | undefined;
    }[];
  };
  /** Agents and proxies: links to servers. */
  readonly links?: readonly LinkInfo[] | undefined;
  /** Agents: the services that they announce. */
  readonly announced?: readonly {
    readonly name: string;
    readonly problem?: string | undefined;
  }[];
  /** Proxies, and agents with one: the services on this machine. */
  readonly services?: {
    readonly services: number;
    readonly ports: number;
    readonly endpoints: number;
    /** Those that get new connections. */
    readonly endpointsInUse: number;
    /** Problems of ports and endpoints, the worst first; at most twenty. */
    readonly problems: readonly {
      readonly service: string;
      /** The endpoint; absent: the problem is the port's. */
      readonly address?: string | undefined;
      readonly problem: string;
    }[];
  };
  /** Proxies: the discovery server that they follow. */
  readonly follows?: {
    readonly state: "following" | "connecting" | "waiting";
    readonly server?: string | undefined;
    /** Why none is followed. */
    readonly problem?: string | undefined;
    /** The age of the served state, while no server has answered yet. */
    readonly recalledFrom?: string | undefined;
  } | undefined;
  /** Servers: the other servers that it knows. */
  readonly servers?: readonly {
    readonly id: string;
    readonly address: string;
    readonly agents?: number | undefined;
    readonly problem?: string | undefined;
  }[];
  /** Sources of services, each with its problem. */
  readonly sources?: readonly {
    readonly name: string;
    readonly isSynced: boolean;
    readonly problem?: string | undefined;
  }[];
  /** Clients of discovery by state. */
  readonly discovery?: {
    readonly clients: number;
    readonly inSync: number;
    readonly refused: number;
  };
  /** The biggest conduits now; at most ten. */
  readonly top?: readonly ConduitInfo[] | undefined;
}

// A program's name on screens.

/** From a worker, with its number. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:-w\d+)?$/;

/** A random id tells less than the name of the machine. */
export function programName(
  { id, host }: Pick<ProgramInfo, "id" | "host">,
): string {
  return UUID.test(id) && host ? host : id;
}
