/**
 * Flags of `tunnel server` to {@linkcode ServerOptions}: the rules that concern
 * more than one flag. Refuses in the order in which a reader would fix things.
 *
 * @module
 */

import type { KeyPairFiles } from "../../host/tls/credentials.ts";
import type { FrontendListen, ServerOptions } from "../../server/options.ts";
import { UsageError } from "../usage_error.ts";
import { keyPair } from "./key_pair.ts";
import type { FlagReading } from "./read_flags.ts";
import type { SERVER_FLAGS } from "./server_flags.ts";
import { tlsLimits } from "./tls_limits.ts";

/**
 * Combines and checks.
 *
 * @param newId Makes an id when none was given.
 * @throws {UsageError} One line.
 */
export function serverOptions(
  reading: FlagReading<typeof SERVER_FLAGS>,
  newId: () => string,
): ServerOptions {
  const flags = reading.values;
  const agentsKeyPair = requiredKeyPair(reading);
  const caFile = flags["cluster-ca-cert"];
  const agentHost = flags["agent-bind-address"];
  const mayBeAnonymous = flags["allow-anonymous-agents"] ||
    (caFile === "" && isLoopback(agentHost));
  if (caFile === "" && !mayBeAnonymous) {
    throw new UsageError(
      "Cannot start without agent authentication: --cluster-ca-cert is not " +
        `given and agents connect on ${agentHost || "all interfaces"}; give ` +
        "it, bind agents to loopback, or accept the risk with " +
        "--allow-anonymous-agents",
    );
  }
  if (flags["proxy-strategies"].length === 0) {
    throw new UsageError(
      "Cannot use --proxy-strategies: saw an empty list, wanted at least one " +
        "of default, destHost, defaultRoute, cidr, uid",
    );
  }
  return {
    serverId: flags["server-id"] || newId(),
    serverCount: flags["server-count"],
    frontend: {
      mode: flags["mode"],
      listen: frontendListen(reading),
      keepaliveMs: flags["frontend-keepalive-time"],
      connectEarly200: flags["connect-early-200"],
    },
    agents: {
      address: { hostname: agentHost, port: flags["agent-port"] },
      keyPair: agentsKeyPair,
      ...(caFile === "" ? {} : { caFile }),
      allowAnonymous: mayBeAnonymous,
      alpnProtocols: flags["alpn-proto"],
      keepaliveMs: flags["keepalive-time"],
    },
    tls: tlsLimits(flags["tls-min-version"], flags["cipher-suites"]),
    strategies: [...new Set(flags["proxy-strategies"])],
    admin: {
      hostname: flags["admin-bind-address"],
      port: flags["admin-port"],
    },
    health: {
      hostname: flags["health-bind-address"],
      port: flags["health-port"],
    },
    dialTimeoutMs: flags["backend-dial-timeout"],
    shutdownTimeoutMs: flags["graceful-shutdown-timeout"],
    messageOctetsMax: flags["message-size-limit"],
  };
}

function requiredKeyPair(
  { values }: FlagReading<typeof SERVER_FLAGS>,
): KeyPairFiles {
  const found = keyPair(
    "cluster-cert",
    values["cluster-cert"],
    "cluster-key",
    values["cluster-key"],
  );
  if (found !== undefined) return found;
  throw new UsageError(
    "Cannot listen for agents: --cluster-cert and --cluster-key are not " +
      "given; they are what the server shows to agents",
  );
}

function frontendListen(
  { values, given }: FlagReading<typeof SERVER_FLAGS>,
): FrontendListen {
  const tlsFlags = ["server-cert", "server-key", "server-ca-cert"] as const;
  const path = values["uds-name"];
  if (path !== "") {
    if (given.has("server-port") && values["server-port"] !== 0) {
      throw new UsageError(
        `Cannot use --server-port=${values["server-port"]} together with ` +
          "--uds-name: there is one frontend listener; use --server-port=0",
      );
    }
    const superfluous = tlsFlags.find((name) => values[name] !== "");
    if (superfluous !== undefined) {
      throw new UsageError(
        `Cannot use --${superfluous} together with --uds-name: there is no ` +
          "TLS on a unix socket, its permissions guard it; remove it",
      );
    }
    const deleteExisting = values["delete-existing-uds-file"];
    return { kind: "unix", path, deleteExisting };
  }
  const pair = keyPair(
    "server-cert",
    values["server-cert"],
    "server-key",
    values["server-key"],
  );
  const caFile = values["server-ca-cert"];
  if (pair === undefined || caFile === "") {
    const lacking = pair === undefined
      ? "--server-cert and --server-key"
      : "--server-ca-cert";
    throw new UsageError(
      `Cannot listen for frontends on a port without ${lacking}: frontends ` +
        "prove who they are by certificate; give all three, or --uds-name",
    );
  }
  return {
    kind: "tcp",
    address: {
      hostname: values["server-bind-address"],
      port: values["server-port"],
    },
    keyPair: pair,
    caFile,
  };
}

/** Whether only this machine can reach a listener on `hostname`. */
export function isLoopback(hostname: string): boolean {
  return /^(?:127\.\d+\.\d+\.\d+|\[?::1\]?|localhost)$/i.test(hostname);
}
