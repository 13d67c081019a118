/**
 * Lists beside nodes and conduits (services, clients of discovery, certificates,
 * the audit log, the configuration, events, history), and how a screen follows
 * them.
 *
 * @module
 */

import type { ConduitInfo, NodeSummary } from "./node_answer.ts";
import type { StatusAnswer } from "./status_answer.ts";

/**
 * `GET /v1/services`; proxies say more: `services/proxy/status/proxy_status.ts`.
 */
export interface ServicesAnswer {
  readonly services: readonly ListedService[];
  readonly total: number;
}

/** A service of a server; of a proxy, one port of a service. */
export interface ListedService {
  readonly name: string;
  readonly source: string;
  readonly ports: readonly string[];
  readonly endpoints: readonly ListedEndpoint[];
  /** What keeps it from being served as it should be. */
  readonly problem?: string | undefined;
  /** Of a proxy: why a client was refused last. */
  readonly lastError?: string | undefined;
}

/** Where it is served from. */
export interface ListedEndpoint {
  readonly address: string;
  readonly node?: string | undefined;
  readonly isReady: boolean;
}

/** `GET /v1/discovery` */
export interface DiscoveryAnswer {
  readonly clients: readonly {
    readonly name: string;
    readonly form: string;
    readonly mode: string;
    readonly since?: string | undefined;
    readonly state: "in sync" | "waiting" | "refused";
    readonly problem?: string | undefined;
    readonly kinds: readonly {
      readonly kind: string;
      readonly resources: number;
      readonly state: string;
    }[];
  }[];
}

/** `GET /v1/certificates`: the soonest to expire first. */
export interface CertificatesAnswer {
  readonly certificates: readonly {
    /** What it is used for, such as `frontend`, `authority`, `node edge-7`. */
    readonly use: string;
    readonly subject: string;
    readonly issuer: string;
    readonly notBefore: string;
    readonly notAfter: string;
    readonly renewal: "by itself" | "by hand";
    readonly problem?: string | undefined;
  }[];
}

/** `GET /v1/audit`, with `?limit=`: newest first; lines of the audit log. */
export interface AuditAnswer {
  readonly entries: readonly Readonly<Record<string, unknown>>[];
}

/** `GET /v1/config` */
export interface ConfigAnswer {
  readonly flags: readonly {
    readonly name: string;
    /** Secrets are not shown. */
    readonly value: string;
    readonly from: "default" | "flag" | "environment" | "file";
  }[];
}

// Recent events in words for people.

/** One thing that happened. */
export interface EventInfo {
  readonly at: string;
  readonly kind:
    | "linked"
    | "unlinked"
    | "refused"
    | "dial-failed"
    | "joined"
    | "revoked"
    | "approved"
    | "drain"
    | "certificate"
    | "duplicate"
    | "reload"
    | "warning";
  /** A stable code that `tunnel explain` knows. */
  readonly code?: string | undefined;
  readonly message: string;
  readonly node?: string | undefined;
  /** How often it came in a row; absent: once. */
  readonly times?: number | undefined;
}

/** `GET /v1/events`, with `?node=`, `?kind=`, `?limit=`: newest first. */
export interface EventsAnswer {
  readonly events: readonly EventInfo[];
}

// What passed through a server in the last hour.

/** One moment. */
export interface HistorySample {
  readonly at: string;
  readonly conduits: number;
  /** Bytes a second, of the last seconds. */
  readonly toTargetRate: number;
  readonly fromTargetRate: number;
  /** Dials a second. */
  readonly dialRate: number;
  /** Since the sample before. */
  readonly failedDials: number;
  /** Failed dials since the previous sample; absent: there were none. */
  readonly dialP50Ms?: number | undefined;
  readonly dialP99Ms?: number | undefined;
}

/** `GET /v1/history`, with `?since=` in RFC 3339; the oldest first. */
export interface HistoryAnswer {
  /** Between two samples. */
  readonly stepMs: number;
  readonly samples: readonly HistorySample[];
}

// `GET /v1/watch`: server-sent events for a screen that follows a server. Each
// has a name, and JSON as its data.
//
// A watcher gets a `status` each second, and the changes of the lists that it
// asked for (`?lists=nodes,conduits,events`): whole items by key, and keys that
// are gone. The first of each list has everything (`isWhole`). A slower watcher
// gets fewer events, never a queue.

/** Changes of one list. */
export interface ListChange<T> {
  readonly isWhole: boolean;
  readonly changed: readonly T[];
  /** Names of nodes, ids of conduits. */
  readonly gone: readonly string[];
}

/** By name of the event. */
export interface WatchEvents {
  readonly status: StatusAnswer;
  readonly nodes: ListChange<NodeSummary>;
  /** The biggest ones by rate, at most 200. */
  readonly conduits: ListChange<ConduitInfo>;
  readonly events: readonly EventInfo[];
}
