/**
 * What `startServer` wants to know, already validated.
 *
 * Nothing here is a flag: durations are milliseconds, ports numbers, lists
 * arrays, and combinations that make no sense cannot be written down. `cli/` makes
 * it of command lines, environments and files; embedders write it themselves.
 *
 * @module
 */

import type { ConfigAnswer } from "../proto/admin/list_answers.ts";
import type { LimitConfig } from "../net/admission/connection_limits.ts";
import type { AdminAccess } from "../net/listen/admin_port.ts";
import type { ListenAddress } from "../net/listen/listeners.ts";
import type { ReloadSource } from "../platform/reload/reloads.ts";
import type { KeyPairFiles } from "../net/tls/trust/credentials.ts";
import type { SecureVersion } from "node:tls";
import type { AccessLogOptions } from "../policy/access_log.ts";
import type { AuditLogOptions } from "../policy/audit_log.ts";
import type { KubernetesOptions } from "../neighbours/kubernetes/connect.ts";
import type {
  SealingKeySource,
  StoreLocation,
} from "../neighbours/store/store_connection.ts";
import type { DiscoveryServerOptions } from "../services/discovery/serving/discovery.ts";

/** What frontends speak; `auto` recognizes it by the first bytes. */
export type FrontendMode = "grpc" | "http-connect" | "auto";

/** The common options of all TLS ports. */
export interface TlsLimits {
  readonly minVersion: SecureVersion;
  /** By Go's names; absent: all of them. */
  readonly tls12Suites?: readonly string[];
}

/** Where frontends connect. */
export type FrontendListen =
  | {
    readonly kind: "unix";
    readonly path: string;
    /** A socket file that is there already is removed first. */
    /** See `listenUnix`. */
    readonly deleteExisting: boolean | "files";
  }
  | {
    readonly kind: "tcp";
    readonly address: ListenAddress;
    readonly keyPair: KeyPairFiles;
    /** Frontends must show a certificate of this CA. */
    readonly caFile: string;
  };

/** The server's own authority and its certificates; see `identity/`. */
export interface ServerIdentityOptions {
  /**
   * The data of this machine alone: the server's own certificate, sockets.
   * Created at the first start.
   */
  readonly stateDirectory: string;
  /**
   * Further names in the server's certificate beside `tunnel-server`; DNS
   * names, addresses.
   */
  readonly serverNames: readonly string[];
  readonly nodeCertificateLifeMs: number;
}

/** How servers find each other; where they meet is where their state is. */
export interface MembershipOptions {
  /** `HOST:PORT` where agents reach this server; absent: if that is certain. */
  readonly advertiseAddress?: string;
  /** A silent server is gone after this time. */
  readonly timeoutMs: number;
  /** Servers named by a flag, perhaps this one too. */
  readonly fixed: readonly {
    readonly serverId: string;
    readonly address: string;
  }[];
}

/** How an agent is chosen for a dial; tried in the configured order. */
export type StrategyName =
  | "default"
  | "destHost"
  | "defaultRoute"
  | "cidr"
  | "uid";

/** The fate of the second process; `--duplicate-identity`. */
export type DuplicatePolicy = "warn" | "refuse";

/** The fate of agents that claim more than their certificate proves. */
export type NodeBinding = "warn" | "enforce";

/** The policy, and where its decisions are recorded. */
export interface AuthorizationOptions {
  /** Absent: every frontend may reach everything. */
  readonly policyFile?: string;
  /** Absent: no audit log. */
  readonly audit?: AuditLogOptions;
}

/** Whose tokens are wanted. */
export interface TokenRequirement {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly audience: string;
}

/** The use of a Kubernetes API server. */
export interface KubernetesServerOptions extends KubernetesOptions {
  /** Agents may show a token of this ServiceAccount instead of a certificate. */
  readonly agentTokens?: TokenRequirement;
  /** The server's lease; absent: none is published. */
  readonly lease?: {
    readonly namespace: string;
    readonly labels: Readonly<Record<string, string>>;
  };
  /** Agents' requests for certificates are decided; absent: they are not. */
  readonly csrApprover?: {
    /** Whose bound tokens count beside nodes' own identities. */
    readonly serviceAccount?: string;
  };
}

/** The port where callers talk to kubelets. */
export interface KubeletOptions {
  readonly address: ListenAddress;
  /** Shown to callers; absent: what agents are shown. */
  readonly keyPair?: KeyPairFiles;
  /** Callers must show a certificate of this CA. */
  readonly callerCaFile: string;
  /** Shown to kubelets; absent: nothing, which most of them refuse. */
  readonly clientKeyPair?: KeyPairFiles;
  /** Kubelets must show a certificate of this CA; absent: any will do. */
  readonly kubeletCaFile?: string;
  /** Ports that agents dial on the node's loopback instead. */
  readonly localhostPorts: readonly number[];
  /** The API server for pods and nodes; absent: none is asked. */
  readonly lookups?: KubernetesOptions;
}

/** All that a server is configured with. */
export interface ServerOptions {
  /** Sent to agents, so that they can distinguish servers. */
  readonly serverId: string;
  /** How many servers an agent should be connected to; sent to agents. */
  readonly serverCount: number;

  /**
   * The store of the authority, tokens, nodes and members; absent: the
   * identity's directory, if there is one.
   */
  readonly state?: StoreLocation;
  /**
   * Absent: servers meet in the store, and this one is found by those that know
   * its address.
   */
  readonly membership?: MembershipOptions;
  /** Absent: keys of authorities are kept as they are. */
  readonly stateKey?: SealingKeySource;

  readonly frontend: {
    readonly mode: FrontendMode;
    readonly listen: FrontendListen;
    /** PING after this long without a sign of life. */
    readonly keepaliveMs: number;
    /** CONNECT is granted before the target has answered. */
    readonly connectEarly200: boolean;
  };

  readonly agents: {
    readonly address: ListenAddress;
    /** Shown to agents. Without an identity of our own it must be there. */
    readonly keyPair?: KeyPairFiles;
    /**
     * Certificates that agents show may be of this CA, too. Without it and
     * without an identity none is asked for.
     */
    readonly caFile?: string;
    /** Agents join, and show certificates of the server's own CA. */
    readonly identity?: ServerIdentityOptions;
    /** For certificates of `caFile` that do not name their agent. */
    readonly nodeBinding?: NodeBinding;
    /** About a second live process with an agent's key; absent: `warn`. */
    readonly duplicateIdentity?: DuplicatePolicy;
    /** Agents without a certificate may register. */
    readonly allowAnonymous: boolean;
    /** ALPN names that mean `h2`, besides `h2`. */
    readonly alpnProtocols: readonly string[];
    /** PING after this long without a sign of life. */
    readonly keepaliveMs: number;
  };

  /**
   * Dials that only another server has an agent for go there; absent: callers are
   * told which one that is. Needs an identity of our own.
   */
  readonly peerForwarding?: boolean;

  readonly tls: TlsLimits;

  /** Limits on connections; an absent one has its default. */
  readonly limiter?: LimitConfig;

  /**
   * The policy; absent: every frontend may reach everything, and nothing is
   * recorded.
   */
  readonly authorization?: AuthorizationOptions;

  /** A line for each connection; absent: none. */
  readonly access?: AccessLogOptions;

  /** Nodes with metrics of their own; `NODES_MAX` unless given. */
  readonly metricsNodesMax?: number;

  /** Agents' tokens and the server's lease; absent: no API server is asked. */
  readonly kubernetes?: KubernetesServerOptions;

  /** A port where callers talk to kubelets; absent: none. */
  readonly kubelet?: KubeletOptions;

  /** The catalog, and how it is served; absent: there is no catalog. */
  readonly discovery?: DiscoveryServerOptions;

  /** Not empty; asked in this order. */
  readonly strategies: readonly StrategyName[];

  readonly admin: ListenAddress;
  /**
   * Other ways to the admin API beside that port; absent: those in its state
   * directory.
   */
  readonly adminAccess?: Pick<AdminAccess, "socket" | "socketGroup">;
  /** The admin port for other machines; absent: there is none. */
  readonly adminRemote?: AdminRemoteOptions;
  /** Whether `/debug/pprof/*` is there; absent: no. */
  readonly profiling?: boolean;
  readonly health: ListenAddress;

  /** Whole dial, agent's part included; 0: no deadline of ours. */
  readonly dialTimeoutMs: number;

  /**
   * After SIGTERM, running connections may go on for this long; 0 ends them at
   * once.
   */
  readonly shutdownTimeoutMs: number;

  /** The file that options came from, if some of them may change in it. */
  readonly config?: ReloadSource | undefined;

  /** Which of several workers this is, from 0; absent: there is one process. */
  readonly worker?: number;
  /** Flags in effect, secrets left out; absent: no command line started this. */
  readonly shownFlags?: () => ConfigAnswer["flags"];

  /** Largest gRPC message that a peer may send. */
  readonly messageBytesMax: number;
}

/** An admin port for people on other machines, with certificates. */
export interface AdminRemoteOptions {
  readonly address: ListenAddress;
  /** Absent: what agents are shown. */
  readonly keyPair?: KeyPairFiles;
  /** PEM: the authorities of clients. */
  readonly clientCaFile: string;
}
