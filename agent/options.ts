/**
 * What `startAgent` wants to know, already validated.
 *
 * Nothing here is a flag: durations are milliseconds, ports numbers, lists
 * arrays. `cli/` fills it from command lines, environments and files; embedders
 * write it themselves.
 *
 * @module
 */

import type { AdminAccess } from "../net/listen/admin_port.ts";
import type { ListenAddress } from "../net/listen/listeners.ts";
import type { ServerAddress } from "../net/dial/server_addresses.ts";
import type { ReloadSource } from "../platform/reload/reloads.ts";
import type { AccessLogOptions } from "../policy/access_log.ts";
import type { AuditLogOptions } from "../policy/audit_log.ts";
import type { RuleSet } from "../policy/rule_set.ts";
import type { KeyPairFiles } from "../net/tls/trust/credentials.ts";
import type { AnnouncedService } from "../proto/link/link_messages.ts";
import type { Identifiers } from "../proto/peer/identifiers.ts";
import type { ConfigAnswer } from "../proto/admin/list_answers.ts";
import type { Carrier } from "../proto/link/link.ts";
import type { KubernetesOptions } from "../neighbours/kubernetes/connect.ts";

/** An identity of our own kind, which a node joins with. */
export interface AgentIdentityOptions {
  /** The directory of the identity. */
  readonly stateDirectory: string;
  /** The join token, when there is no identity yet. */
  readonly token?: string;
  /** Whom to join as; an identity of another name is refused. */
  readonly node?: string | undefined;
}

/** How servers are counted by their leases. */
export interface LeaseCountOptions extends KubernetesOptions {
  readonly namespace: string;
  readonly labelSelector: string;
  /** `max`: or what servers say, if that is more. */
  readonly source: "leases" | "max";
}

/**
 * The relays for programs on the node, which have no identity of their own.
 * They listen on loopback only, because that is their only protection.
 */
export interface RelayOptions {
  /** The port for discovery; absent: none. */
  readonly xds?: ListenAddress;
  /** The port for connections by HTTP CONNECT; absent: none. */
  readonly connect?: ListenAddress;
}

export interface AgentOptions {
  /** Empty: the name that the node has joined with. */
  readonly agentId: string;
  /** The program's id, when it is several processes; absent: a new one. */
  readonly instanceId?: string;
  /** What this agent says it serves; absent: what the node was granted. */
  readonly identifiers?: Identifiers;

  /** In place of `server.caFile` and `server.keyPair`. */
  readonly identity?: AgentIdentityOptions;

  readonly server: {
    /**
     * Each often of a load balancer before many servers. At least one, unless
     * a joined identity remembers where it joined.
     */
    readonly addresses: readonly ServerAddress[];
    /** The server's certificate must be of this CA; empty: the public ones. */
    readonly caFile: string;
    /** Absent: no certificate is shown. */
    readonly keyPair?: KeyPairFiles;
    /** Holds a token to show, read for each link. */
    readonly tokenFile?: string;
    /** ALPN names offered before `h2`. */
    readonly alpnProtocols: readonly string[];
    /**
     * Carriers offered; both when absent. `packets` alone suits a route on which
     * something drops connections whose ALPN names it does not know.
     */
    readonly carriers?: readonly Carrier[];
    /** Transport connections per server (streams carrier only). At least 1. */
    readonly links: number;
    /** PING after this long without a sign of life. */
    readonly keepaliveMs: number;
  };

  readonly sync: {
    /** First wait before another attempt; short by default. */
    readonly intervalMs?: number;
    /** Longest wait between attempts; never below `intervalMs`. */
    readonly intervalCapMs: number;
    /** Keep looking for more servers than the count that servers report. */
    readonly forever: boolean;
    /** Addresses that servers say are linked to as well; absent: they are. */
    readonly learnsServers?: boolean;
  };

  /** How servers are counted by their leases; absent: servers say it. */
  readonly leases?: LeaseCountOptions;

  readonly dials: {
    /** Limit on connecting to a target, name resolution included. */
    readonly timeoutMs: number;
    /**
     * What may be dialed, asked for each dial; absent, or nothing: tcp and udp
     * anywhere.
     */
    readonly rules?: () => RuleSet | undefined;
    /** Socket paths that no rule need allow; none by default. */
    readonly allowUnix: readonly string[];
    /** Whether callers that may dial may also measure this agent. */
    readonly hasBenchTarget: boolean;
  };

  /** What this node serves for others, sent to servers; absent: nothing. */
  readonly services?: readonly AnnouncedService[];

  /**
   * Used instead of `services` when they can change: called for each link, and
   * whenever files were read again. Returns the same array until they differ.
   */
  readonly liveServices?: () => readonly AnnouncedService[];

  /** The relays for programs on this machine; absent: none. */
  readonly relay?: RelayOptions;

  /** The file of services for this machine; absent: none. */
  readonly servicesFile?: string;

  /** The file that keeps their addresses; absent: none. */
  readonly addressFile?: string;

  /** Absent: no audit log. */
  readonly audit?: AuditLogOptions;

  /** A line for each connection; absent: none. */
  readonly access?: AccessLogOptions;

  /**
   * After SIGTERM, running conduits may go on for this long; 0 ends them at
   * once.
   */
  readonly drainTimeoutMs: number;

  readonly health: ListenAddress;
  /** Absent: its answers are on the health port, too. */
  readonly admin?: ListenAddress;
  /**
   * Other ways to the admin API beside that port; absent: those in its state
   * directory.
   */
  readonly adminAccess?: AdminAccess;
  /** Whether `/debug/pprof/*` is there; absent: no. */
  readonly profiling?: boolean;
  /** The flags in effect, without secrets; absent: they are not shown. */
  readonly shownFlags?: () => ConfigAnswer["flags"];

  /** The file that options came from, if some of them may change in it. */
  readonly config?: ReloadSource;

  /** Largest gRPC message that a server may send. */
  readonly messageBytesMax: number;
}
