/**
 * kube-apiserver's `EgressSelectorConfiguration`: which route a network context
 * takes.
 *
 * Read as strictly as kube-apiserver reads it: an unknown field is an error,
 * because a misspelt one would silently send traffic the wrong way.
 *
 * @module
 */

import { hostPort, withoutBrackets } from "../proto/peer/host_port.ts";
import { parseYaml, problemIn } from "../platform/documents/document.ts";
import {
  as,
  FULL_TEXT,
  list,
  map,
  readShape,
  type Shape,
  text,
  word,
} from "../platform/documents/shape.ts";
import type {
  FrontendAddress,
  FrontendProtocol,
  TunnelRoute,
} from "./tunnel_route.ts";
import { stringify } from "../platform/documents/yaml.ts";

/** The network contexts of kube-apiserver. */
export const NETWORK_CONTEXTS = ["controlplane", "etcd", "cluster"] as const;

/** One of {@linkcode NETWORK_CONTEXTS}. */
export type NetworkContext = typeof NETWORK_CONTEXTS[number];

/** Routes by context; what a file does not name goes direct (as upstream). */
export type EgressRoutes = ReadonlyMap<NetworkContext, TunnelRoute>;

/** The file says something that cannot be followed. */
export class EgressConfigError extends Error {
  /** Tells it from other errors, also by its text. */
  override readonly name = "EgressConfigError";
  /** See `tunnel explain`. */
  readonly tunnelCode: string = "TUN124";
}

const KIND = "EgressSelectorConfiguration";

const API_VERSIONS = [
  "apiserver.k8s.io/v1alpha1",
  "apiserver.k8s.io/v1beta1",
  "apiserver.config.k8s.io/v1alpha1",
  "apiserver.config.k8s.io/v1beta1",
];

/**
 * Reads a configuration.
 *
 * @param document YAML or JSON.
 * @param source Its name in errors, such as the file's name.
 * @throws {EgressConfigError} Naming the field, what was seen and what was
 *   wanted.
 */
export function parseEgressConfig(
  document: string,
  source: string,
): EgressRoutes {
  try {
    return readShape(EGRESS, parseYaml(document));
  } catch (error) {
    throw new EgressConfigError(
      `Cannot use ${source}: ${problemIn(document, error)}`,
      { cause: error },
    );
  }
}

const MISSING = "it is missing";

const TLS = map({
  caBundle: FULL_TEXT,
  clientKey: FULL_TEXT,
  clientCert: FULL_TEXT,
  tlsServerName: FULL_TEXT,
}, {
  required: { caBundle: MISSING, clientKey: MISSING, clientCert: MISSING },
});

/** Only https: a frontend on TCP always asks for a certificate. */
const URL_TEXT = text(/^https:\/\//, (given) => {
  if (!URL.canParse(given)) return `saw "${given}", wanted https://host:port`;
  const { protocol } = new URL(given);
  return protocol === "https:"
    ? undefined
    : `it starts with ${protocol}//, wanted https://`;
});

const TRANSPORT: Shape<FrontendAddress> = as(
  map({
    tcp: map({ url: URL_TEXT, tlsConfig: TLS }, {
      required: { url: MISSING, tlsConfig: MISSING },
    }),
    uds: map({ udsName: FULL_TEXT }, { required: { udsName: MISSING } }),
  }, { oneOf: ["tcp", "uds"] }),
  ({ tcp, uds }): FrontendAddress => {
    if (tcp === undefined) return { kind: "unix", path: uds!.udsName };
    const { hostname, port } = new URL(tcp.url);
    const { caBundle, clientCert, clientKey, tlsServerName } = tcp.tlsConfig;
    return {
      kind: "tcp",
      host: withoutBrackets(hostname),
      port: port === "" ? 443 : Number(port),
      tls: {
        caFile: caBundle,
        certFile: clientCert,
        keyFile: clientKey,
        serverName: tlsServerName,
      },
    };
  },
);

const PROTOCOLS: Readonly<Record<"GRPC" | "HTTPConnect", FrontendProtocol>> = {
  GRPC: "grpc",
  HTTPConnect: "http-connect",
};

const CONNECTION: Shape<TunnelRoute> = as(
  map({
    proxyProtocol: word(["GRPC", "HTTPConnect", "Direct"]),
    transport: TRANSPORT,
  }, { required: { proxyProtocol: MISSING } }),
  ({ proxyProtocol, transport }, at): TunnelRoute | undefined => {
    if (proxyProtocol === "Direct") {
      return transport === undefined
        ? { kind: "direct" }
        : at.say('it must not be with "Direct"', "transport");
    }
    return transport === undefined ? at.say(MISSING, "transport") : {
      kind: "tunnel",
      protocol: PROTOCOLS[proxyProtocol],
      address: transport,
    };
  },
);

/** The whole document. */
export const EGRESS: Shape<EgressRoutes> = as(
  map({
    apiVersion: word(API_VERSIONS),
    kind: word([KIND]),
    egressSelections: list(
      map({ name: word(NETWORK_CONTEXTS), connection: CONNECTION }, {
        required: { name: MISSING, connection: MISSING },
      }),
    ),
  }, {
    required: {
      apiVersion: `it is missing, wanted ${API_VERSIONS.join(" or ")}`,
      kind: `it is missing, wanted ${KIND}`,
      egressSelections: "wanted a list",
    },
  }),
  ({ egressSelections }, at) => {
    const routes = new Map<NetworkContext, TunnelRoute>();
    for (const [index, { name, connection }] of egressSelections.entries()) {
      if (routes.has(name)) {
        at.say("it is there twice", "egressSelections", index, "name");
      }
      routes.set(name, connection);
    }
    return routes;
  },
);

// Writes kube-apiserver's `EgressSelectorConfiguration`, which
// `egress_config.ts` reads.

/**
 * The configuration as YAML. Paths stand in it as they are given, so they had
 * better be absolute.
 *
 * @throws {TypeError} For gRPC over TCP and for several servers, neither of which
 *   kube-apiserver knows.
 */
export function formatEgressConfig(routes: EgressRoutes): string {
  return stringify({
    apiVersion: "apiserver.k8s.io/v1beta1",
    kind: "EgressSelectorConfiguration",
    egressSelections: [...routes].map(([name, route]) => ({
      name,
      connection: connectionOf(route),
    })),
  });
}

function connectionOf(route: TunnelRoute): object {
  if (route.kind === "direct") return { proxyProtocol: "Direct" };
  if (route.kind === "node") throw new TypeError("kube-apiserver is no node");
  const { protocol, address, others = [] } = route;
  if (others.length > 0) throw new TypeError("kube-apiserver asks one server");
  if (protocol === "grpc" && address.kind === "tcp") {
    throw new TypeError("kube-apiserver speaks gRPC over unix sockets only");
  }
  return {
    proxyProtocol: protocol === "grpc" ? "GRPC" : "HTTPConnect",
    transport: transportOf(address),
  };
}

function transportOf(address: FrontendAddress): object {
  if (address.kind === "unix") return { uds: { udsName: address.path } };
  const { host, port, tls } = address;
  const { caFile, certFile, keyFile, serverName } = tls;
  return {
    tcp: {
      url: `https://${hostPort(host, port)}`,
      tlsConfig: {
        caBundle: caFile,
        clientCert: certFile,
        clientKey: keyFile,
        tlsServerName: serverName,
      },
    },
  };
}
