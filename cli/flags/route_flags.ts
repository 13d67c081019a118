/**
 * Flags of `dial`, `forward` and `bench`: by which route into the tunnel.
 *
 * @module
 */

import {
  NETWORK_CONTEXTS,
  parseEgressConfig,
} from "../../client/egress_config.ts";
import { hasUsableIdentity } from "../../agent/identity/agent_state.ts";
import type {
  FrontendAddress,
  TunnelRoute,
} from "../../client/tunnel_route.ts";
import type { Code } from "../../proto/codes/codes.ts";
import {
  keyPair,
  refuseFlags,
  textOf,
  unusable,
  UsageError,
} from "./usage_error.ts";
import { parseHostPort, parseServerList } from "./addresses.ts";
import { common, flag, inGroup } from "./flag.ts";
import { given } from "../../platform/documents/given.ts";
import { nodeRouteOf, type RouteSources } from "./node_route.ts";
import type { FlagReading, FlagSources } from "./read_flags.ts";
import {
  defaultStateDirectory,
  FRONTEND_SOCKET,
  stateDirectoryFlag,
} from "./state_directory.ts";
import { isSocket } from "../../admin/ask/worker_sockets.ts";

const TARGET = "The target";

/** Flags that ask for the route of a node. */
const NODE_FLAGS = ["as-node", "state-dir", "agent-cert", "agent-key"] as const;

/** Flags that choose the route. */
export const ROUTE_ONLY_FLAGS = inGroup("The route into the tunnel", {
  "server": common(flag.word("ADDRESS[,…]", {
    help: "Frontend of the server: unix:/path or host:port; of several, the " +
      "next one is asked where one cannot serve. For a node: the server's " +
      "port for agents.",
    defaultText: "the socket of a server on this machine, or where this node " +
      "has joined",
  })),
  "proxy-mode": flag.choice(["grpc", "http-connect"], "grpc", {
    help: "Protocol to speak to the frontend.",
  }),
  "ca-cert": flag.file("CA of the server's certificate; for host:port."),
  "cert": flag.file("Certificate to show."),
  "key": flag.file("Private key of --cert."),
  "tls-server-name": flag.word("NAME", {
    help: "Name that the server's certificate must bear.",
    defaultText: "the host of --server",
  }),
  "as-node": flag.boolean(false, {
    help: "Connect as this node, through the server's port for agents. A " +
      "node that has joined does so where no other route is given and " +
      "no server runs on this machine.",
  }),
  "state-dir": stateDirectoryFlag("agent"),
  "agent-cert": flag.file({
    help: "Certificate of a node that has not joined; with --ca-cert.",
  }),
  "agent-key": flag.file("Private key of --agent-cert."),
  "egress-config": flag.file({
    help: "Take the route from this EgressSelectorConfiguration of " +
      "kube-apiserver instead.",
  }),
  "network": flag.choice(NETWORK_CONTEXTS, "cluster", {
    help: "Which of its routes to take.",
  }),
});

/** For commands whose callers send first. */
export const EARLY_DATA_FLAG = inGroup(TARGET, {
  "early-data": flag.boolean(true, {
    help: "Send what a caller says first together with the dial, which saves " +
      "a round trip. If the server or agent then hangs, the connection " +
      "fails, because the target may have received it. With =false it " +
      "follows once the target is connected.",
  }),
});

/** Flags that an `--egress-config` replaces. */
const FILE_FLAGS = Object.keys(ROUTE_ONLY_FLAGS)
  .filter((name) => !["egress-config", "network"].includes(name));

/** Shared by every command that dials. */
export const ROUTE_FLAGS = {
  ...ROUTE_ONLY_FLAGS,
  ...inGroup(TARGET, {
    "node": flag.word("NAME", {
      offers: "nodes",
      help: "Dial from this node's agent, whatever the target's name is.",
    }),
    // Longer than a server's own limit: the server reports which agent is silent.
    "dial-timeout": flag.duration(12_000, 1, {
      help: "Limit on connecting. If it is shorter than the server's own " +
        "limit (10s), the server cannot report which agent does not " +
        "answer.",
    }),
  }),
} as const;

/**
 * Chooses the route.
 *
 * @param sources Files, and where a server on this machine would listen.
 * @param stateDirectory Where an agent keeps its identity by default.
 * @throws {UsageError} When flags contradict each other or lack something.
 */
export function routeOf(
  { values: flags, given: named }: FlagReading<typeof ROUTE_ONLY_FLAGS>,
  sources: RouteSources,
  stateDirectory: string = defaultStateDirectory("agent", sources.environment),
): TunnelRoute {
  const { readFile, environment } = sources;
  if (flags["egress-config"] !== "") {
    refuseFlags(
      FILE_FLAGS,
      (name) => named.has(name),
      "together with --egress-config: the file says where and how to " +
        "connect; remove one of them",
    );
    return routeFromFile(flags["egress-config"], flags["network"], readFile);
  }
  if (named.has("network")) {
    throw new UsageError(
      "Cannot use --network alone: it picks a route out of a file; give " +
        "--egress-config too",
    );
  }
  const isNode = NODE_FLAGS.some((name) => named.has(name)) ||
    flags["server"] === "" && hasUsableIdentity(stateDirectory) &&
      !hasLocalFrontend(environment);
  if (isNode) {
    const reading = { values: flags, given: named };
    return nodeRouteOf(reading, sources, stateDirectory);
  }
  return routeFromFlags(flags, environment);
}

/**
 * The route, if there is one: where no flag names it and no server is on this
 * machine, it is missing.
 *
 * @throws {UsageError} When flags contradict each other or lack something.
 */
export function routeIfAny(
  reading: FlagReading<typeof ROUTE_ONLY_FLAGS>,
  sources: RouteSources,
  stateDirectory: string = defaultStateDirectory("agent", sources.environment),
): TunnelRoute | undefined {
  const isNamed = Object.keys(ROUTE_ONLY_FLAGS)
    .some((name) => reading.given.has(name));
  const isThere = hasLocalFrontend(sources.environment) ||
    hasUsableIdentity(stateDirectory);
  return isNamed || isThere
    ? routeOf(reading, sources, stateDirectory)
    : undefined;
}

/**
 * A directory without an identity: the check must not depend on this machine's.
 */
const NOWHERE = "/nonexistent";
const ABOUT_MACHINE: readonly Code[] = ["TUN114", "TUN309"];

/**
 * For commands that dial: the errors of {@linkcode routeOf} that depend on
 * flags alone.
 */
export function routeRules(
  reading: FlagReading<typeof ROUTE_ONLY_FLAGS>,
): readonly (() => unknown)[] {
  const { values, given } = reading;
  const isNamed = ["server", "egress-config", "network", ...NODE_FLAGS]
    .some((name) => given.has(name));
  // Without them it is the machine that says it.
  if (!isNamed) return [];
  const hasPair = values["agent-cert"] !== "" || values["agent-key"] !== "";
  const alone = hasPair ? values : { ...values, "state-dir": "" };
  const sources: RouteSources = {
    environment: () => undefined,
    readFile(path) {
      throw new Deno.errors.NotFound(path);
    },
  };
  return [() => {
    try {
      routeOf({ ...reading, values: alone }, sources, NOWHERE);
    } catch (error) {
      const isOfMachine = error instanceof UsageError &&
        ABOUT_MACHINE.includes(error.tunnelCode);
      if (!isOfMachine) throw error;
    }
  }];
}

function routeFromFile(
  path: string,
  network: typeof NETWORK_CONTEXTS[number],
  readFile: (path: string) => string,
): TunnelRoute {
  const content = textOf(`Cannot use --egress-config ${path}`, path, readFile);
  // As in kube-apiserver, a network that the file does not name is dialed
  // directly.
  return parseEgressConfig(content, path).get(network) ?? { kind: "direct" };
}

/** The socket that `tunnel server` opens by default. */
function defaultFrontend(environment: FlagSources["environment"]): string {
  const path = frontendPath(environment);
  if (isSocket(path)) return `unix:${path}`;
  throw new UsageError(
    `Cannot find the tunnel: --server is not given, and no server listens on ` +
      `${path}; wanted unix:/path or host:port of a server's frontend, or ` +
      "tunnel join on this node",
  );
}

/**
 * Whether a server is on this machine, with its frontend at the default place.
 */
export function hasLocalFrontend(
  environment: FlagSources["environment"],
): boolean {
  return isSocket(frontendPath(environment));
}

function frontendPath(environment: FlagSources["environment"]): string {
  return `${defaultStateDirectory("server", environment)}/${FRONTEND_SOCKET}`;
}

type Values = FlagReading<typeof ROUTE_ONLY_FLAGS>["values"];

function routeFromFlags(
  flags: Values,
  environment: FlagSources["environment"],
): TunnelRoute {
  const servers = flags["server"] === ""
    ? [defaultFrontend(environment)]
    : parseServerList(flags["server"]);
  const [address, ...others] = servers.map((server) =>
    frontendOf(server, flags)
  );
  if (servers.every((server) => UNIX.test(server))) refuseCertificates(flags);
  return {
    kind: "tunnel",
    protocol: flags["proxy-mode"],
    address: address!,
    ...(others.length === 0 ? {} : { others }),
  };
}

const UNIX = /^unix:/;

function frontendOf(server: string, flags: Values): FrontendAddress {
  if (UNIX.test(server)) {
    const path = server.replace(/^unix:(?:\/\/(?=\/))?/, "");
    if (path !== "") return { kind: "unix", path };
    throw unusable("--server", server, "unix:/path");
  }
  const { host, port } = parseHostPort("--server", server);
  const pair = keyPair(flags, "cert", "key");
  const caFile = flags["ca-cert"];
  if (pair === undefined || caFile === "") {
    throw new UsageError(
      `Cannot connect to ${server} without --ca-cert, --cert and --key: ` +
        "a frontend on a port asks for a certificate; give all three",
    );
  }
  const serverName = flags["tls-server-name"] || undefined;
  const tls = given({ caFile, ...pair, serverName });
  return { kind: "tcp", host, port, tls };
}

function refuseCertificates(flags: Values): void {
  const pair = keyPair(flags, "cert", "key");
  if (pair === undefined && flags["ca-cert"] === "") return;
  throw new UsageError(
    "Cannot use --ca-cert, --cert or --key with a unix socket: there is " +
      "no TLS on it; remove them",
  );
}
