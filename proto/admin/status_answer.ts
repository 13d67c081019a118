/**
 * What a program says of itself at a glance: what needs attention first, then
 * what it has.
 *
 * @module
 */

import type { ConduitInfo } from "./node_answer.ts";

/** Something that an operator should look at although the program works. */
export interface Warning {
  /** A stable code that `tunnel explain` knows. */
  readonly code?: string | undefined;
  readonly severity: "error" | "warning" | "notice";
  /** One sentence: what was seen, what follows, what to do. */
  readonly message: string;
  /** Since when, where that is known. */
  readonly since?: string | undefined;
  /** The node that it is about. */
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
  /** Of the machine, when the answer was made. */
  readonly now: string;
  readonly isReady: boolean;
  readonly isDraining: boolean;
  /** Where it is one of several workers: which one, from 0. */
  readonly worker?: number | undefined;
  /** And of how many. */
  readonly workers?: number | undefined;
  /** Where it listens: `agents`, `frontend`, `health`, `admin` … */
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
  /** Who renews it, or nobody. */
  readonly renewal: "by itself" | "by hand";
}

/** A link as its server or its agent sees it. */
export interface LinkInfo {
  /** Of this process; stays the same while the link lives. */
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
      /** Who is connected to it, the biggest first; at most five. */
      readonly callers?: readonly string[] | undefined;
    }[];
  };
  /** Agents and proxies: links to servers. */
  readonly links?: readonly LinkInfo[] | undefined;
  /** Agents: what they announce to serve for others. */
  readonly announced?: readonly {
    readonly name: string;
    readonly problem?: string | undefined;
  }[];
  /** Proxies, and agents that have one: what is served on the machine. */
  readonly services?: {
    readonly services: number;
    readonly ports: number;
    readonly endpoints: number;
    /** Those that get new connections. */
    readonly endpointsInUse: number;
    /** Of ports and endpoints, the worst first; at most twenty. */
    readonly problems: readonly {
      readonly service: string;
      /** Of an endpoint; absent: it is about a port. */
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
    /** From when what is served is, where no server has answered yet. */
    readonly recalledFrom?: string | undefined;
  };
  /** Servers: the others that it knows. */
  readonly servers?: readonly {
    readonly id: string;
    readonly address: string;
    readonly agents?: number | undefined;
    readonly problem?: string | undefined;
  }[];
  /** Sources of services, with what is wrong with each. */
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

// What a program is called on screens.

/** Of a worker, with its number. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:-w\d+)?$/;

/** An id that nobody chose says less than the name of the machine. */
export function programName(
  { id, host }: Pick<ProgramInfo, "id" | "host">,
): string {
  return UUID.test(id) && host ? host : id;
}
