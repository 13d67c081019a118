/**
 * Flags of `tunnel server` to {@linkcode ServerOptions}: the rules that concern
 * more than one flag. Refuses in the order in which a reader would fix things.
 *
 * @module
 */

import type { KeyPairFiles } from "../../net/tls/trust/credentials.ts";
import type {
  FrontendListen,
  ServerIdentityOptions,
  ServerOptions,
  TlsLimits,
} from "../../server/options.ts";
import { adminRemoteOptions } from "./admin_remote.ts";
import { adminAccess } from "../flags/program_flags.ts";
import { anyGiven, given } from "../../platform/documents/given.ts";
import { listenAt } from "../flags/addresses.ts";
import {
  keyPair,
  orMistake,
  refuseFlags,
  UsageError,
} from "../flags/usage_error.ts";
import {
  type WorkerRole,
  workerServerId,
} from "../program/workers/worker_words.ts";
import { accessLog, auditOptions } from "../flags/access_log_flags.ts";
import type { SERVER_FLAGS } from "./flags.ts";
import type { LimitConfig } from "../../net/admission/connection_limits.ts";
import { isLoopbackHost } from "../../proto/peer/ip_address.ts";
import { membershipOptions } from "./peers.ts";
import { kubeletOptions } from "./kubelet.ts";
import { serverKubernetes } from "./kubernetes.ts";
import type { FlagReading, FlagSources } from "../flags/read_flags.ts";
import { stateKey as keyOfState, stateLocation } from "../flags/state_flags.ts";
import { namesEtcd } from "./discovery.ts";
import { FRONTEND_SOCKET } from "../flags/state_directory.ts";
import {
  allowedSuites,
  parseMinVersion,
  TlsOptionError,
} from "../../net/tls/trust/tls_options.ts";
import { isOpensslUsed } from "../../net/tls/tls_in_use.ts";
import { HAS_UNIX_SOCKETS } from "../../net/stream/socket_connect.ts";

/**
 * Combines and checks.
 *
 * @param stateDirectory Where the server keeps its identity by default.
 * @param newId Makes an id when none was given.
 * @param worker Each worker is a server of its own for agents.
 * @throws {UsageError} One line.
 */
export function serverOptions(
  reading: Reading,
  stateDirectory: string,
  context: Pick<FlagSources, "readFile">,
  newId: () => string = () => crypto.randomUUID(),
  worker?: Pick<WorkerRole, "index">,
): ServerOptions {
  const flags = reading.values;
  const agentsKeyPair = keyPair(flags, "cluster-cert", "cluster-key");
  const identity = identityOptions(reading, agentsKeyPair, stateDirectory);
  const caFile = flags["cluster-ca-cert"];
  const serverId = workerServerId(flags["server-id"] || newId(), worker);
  const kubernetes = serverKubernetes(flags, serverId);
  const isAuthenticated = identity !== undefined || caFile !== "" ||
    kubernetes?.agentTokens !== undefined;
  if (flags["proxy-strategies"].length === 0) {
    throw new UsageError(
      "Cannot use --proxy-strategies: saw an empty list, wanted at least one " +
        "of default, destHost, defaultRoute, cidr, uid",
    );
  }
  return given({
    serverId,
    worker: worker?.index,
    // Each of the servers has as many workers as this one, as far as is known.
    serverCount: flags["server-count"] * flags["workers"],
    membership: membershipOptions(flags),
    ...stateOptions(reading, identity, context),
    frontend: {
      mode: flags["mode"],
      listen: frontendListen(reading, identity),
      keepaliveMs: flags["frontend-keepalive-time"],
      connectEarly200: flags["connect-early-200"],
    },
    agents: given({
      address: listenAt(flags, "agent-bind-address", "agent-port"),
      keyPair: agentsKeyPair,
      caFile: caFile || undefined,
      identity,
      nodeBinding: flags["node-binding"],
      duplicateIdentity: flags["duplicate-identity"],
      allowAnonymous: mayBeAnonymous(reading, isAuthenticated),
      alpnProtocols: flags["alpn-proto"],
      keepaliveMs: flags["keepalive-time"],
    }),
    peerForwarding: forwards(flags, identity) || undefined,
    tls: tlsLimits(flags["tls-min-version"], flags["cipher-suites"]),
    limiter: admissionLimits(flags),
    authorization: anyGiven({
      policyFile: flags["policy-file"] || undefined,
      audit: auditOptions(flags, worker),
    }),
    ...accessLog(flags, worker),
    metricsNodesMax: flags["metrics-nodes-max"],
    kubernetes,
    kubelet: kubeletOptions(reading),
    strategies: [...new Set(flags["proxy-strategies"])],
    admin: listenAt(flags, "admin-bind-address", "admin-port"),
    // Its tokens, and the socket unless one is named, are with the identity.
    adminAccess: anyGiven(adminAccess(flags)),
    adminRemote: adminRemoteOptions(reading),
    profiling: flags["enable-profiling"] || undefined,
    health: listenAt(flags, "health-bind-address", "health-port"),
    dialTimeoutMs: flags["backend-dial-timeout"],
    shutdownTimeoutMs: flags["graceful-shutdown-timeout"],
    messageBytesMax: flags["message-size-limit"],
  });
}

type Reading = FlagReading<typeof SERVER_FLAGS>;

/** @param isAuthenticated Whether agents can be authenticated at all. */
function mayBeAnonymous(
  { values }: Reading,
  isAuthenticated: boolean,
): boolean {
  const agentHost = values["agent-bind-address"];
  const isAllowed = values["allow-anonymous-agents"] ||
    (!isAuthenticated && isLoopbackHost(agentHost));
  if (isAuthenticated || isAllowed) return isAllowed;
  throw new UsageError(
    "Cannot start without agent authentication: --cluster-ca-cert is not " +
      `given and agents connect on ${agentHost || "all interfaces"}; give ` +
      "it, bind agents to loopback, or accept the risk with " +
      "--allow-anonymous-agents",
  );
}

/**
 * The server has an identity of its own unless it is run Konnectivity's way,
 * with a certificate from elsewhere; naming its directory asks for both.
 */
function identityOptions(
  { values, given }: Reading,
  pair: KeyPairFiles | undefined,
  stateDirectory: string,
): ServerIdentityOptions | undefined {
  const isMeant = ["state-dir", "state"].some((name) => given.has(name));
  if (pair === undefined || isMeant) {
    return {
      stateDirectory: values["state-dir"] || stateDirectory,
      serverNames: values["server-names"],
      nodeCertificateLifeMs: values["node-certificate-ttl"],
    };
  }
  refuseFlags(
    ["server-names", "node-certificate-ttl", "state-key-file"],
    (name) => given.has(name),
    "with --cluster-cert alone: it is about the server's own CA; add " +
      "--state-dir to have one beside it",
  );
  return undefined;
}

/** Absent: all is in the identity's directory, or there is no identity. */
function stateOptions(
  { values, given: named }: Reading,
  identity: ServerIdentityOptions | undefined,
  context: Pick<FlagSources, "readFile">,
): Pick<ServerOptions, "state" | "stateKey"> {
  if (identity === undefined) return {};
  const { stateDirectory } = identity;
  const hasOtherEtcd = namesEtcd(named) || !named.has("state");
  const state = stateLocation(
    values,
    { stateDirectory, hasOtherEtcd },
    context,
  );
  const stateKey = keyOfState(values, state);
  return given({ state: named.has("state") ? state : undefined, stateKey });
}

/** Only its authority knows the purpose of a foreign certificate. */
function forwards(
  values: Reading["values"],
  identity: ServerIdentityOptions | undefined,
): boolean {
  if (!values["peer-forwarding"] || identity !== undefined) {
    return values["peer-forwarding"];
  }
  throw new UsageError(
    "Cannot use --peer-forwarding with --cluster-cert alone: servers know " +
      "each other by certificates of a CA of their own; add --state-dir or " +
      "--state, the same for all of them",
  );
}

function frontendListen(
  { values, given }: Reading,
  identity: ServerIdentityOptions | undefined,
): FrontendListen {
  const tlsFlags = ["server-cert", "server-key", "server-ca-cert"] as const;
  const tcpFlags = ["server-port", "server-bind-address", ...tlsFlags];
  const path = values["uds-name"];
  const isUnnamed = identity !== undefined && path === "" &&
    !tcpFlags.some((name) => given.has(name));
  if (!HAS_UNIX_SOCKETS && (path !== "" || isUnnamed)) {
    throw new UsageError(
      "Cannot listen for frontends on a unix socket: there are none on " +
        "Windows; give --server-port, --server-cert, --server-key and " +
        "--server-ca-cert",
    );
  }
  if (path !== "") {
    if (given.has("server-port") && values["server-port"] !== 0) {
      throw new UsageError(
        `Cannot use --server-port=${values["server-port"]} together with ` +
          "--uds-name: there is one frontend listener; use --server-port=0",
      );
    }
    refuseFlags(
      tlsFlags,
      (name) => values[name] !== "",
      "together with --uds-name: there is no TLS on a unix socket, its " +
        "permissions guard it; remove it",
    );
    const deleteExisting = values["delete-existing-uds-file"] && "files";
    return { kind: "unix", path, deleteExisting };
  }
  if (isUnnamed) {
    const path = `${identity.stateDirectory}/${FRONTEND_SOCKET}`;
    return { kind: "unix", path, deleteExisting: true };
  }
  const pair = keyPair(values, "server-cert", "server-key");
  const caFile = values["server-ca-cert"];
  if (pair === undefined || caFile === "") {
    const lacking = pair === undefined
      ? "--server-cert and --server-key"
      : "--server-ca-cert";
    throw new UsageError(
      `Cannot listen for frontends on a port without ${lacking}: frontends ` +
        "authenticate by certificate; give all three, or --uds-name",
    );
  }
  return {
    kind: "tcp",
    address: listenAt(values, "server-bind-address", "server-port"),
    keyPair: pair,
    caFile,
  };
}

/**
 * Checks both flags.
 *
 * @throws {UsageError} Listing what can be used.
 */
export function tlsLimits(
  minVersionName: string,
  cipherSuites: readonly string[],
  canLimit: () => boolean = isOpensslUsed,
): TlsLimits {
  return orMistake([TlsOptionError], () => {
    const minVersion = parseMinVersion(minVersionName);
    const tls12Suites = allowedSuites(cipherSuites, minVersion, canLimit);
    return given({ minVersion, tls12Suites });
  });
}

/** Limits on peers, of which each worker has its part; absent: a default. */
function admissionLimits(values: Reading["values"]): LimitConfig {
  const part = (limit: number) =>
    Math.ceil(limit / values["workers"]) || undefined;
  return given({
    connectionsMax: part(values["max-connections"]),
    unauthenticatedMax: part(values["max-unauthenticated"]),
    sourceConnectionsMax: values["max-connections-per-source"],
    sourceUnauthenticatedMax: values["max-unauthenticated-per-source"],
  });
}
