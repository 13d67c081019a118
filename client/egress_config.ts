/**
 * kube-apiserver's `EgressSelectorConfiguration`: which route a network context
 * takes.
 *
 * Read as strictly as kube-apiserver reads it: an unknown field is an error,
 * because a misspelt one would silently send traffic the wrong way.
 *
 * @module
 */

import { withoutBrackets } from "../proto/peer/host_port.ts";
import {
  DocumentError,
  parseYaml,
  withLine,
} from "../platform/documents/document.ts";
import { DocumentMap, FieldError } from "../platform/documents/document_map.ts";
import type {
  FrontendAddress,
  FrontendProtocol,
  TunnelRoute,
} from "./tunnel_route.ts";

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

const API_VERSIONS = [
  "apiserver.k8s.io/v1alpha1",
  "apiserver.k8s.io/v1beta1",
  "apiserver.config.k8s.io/v1alpha1",
  "apiserver.config.k8s.io/v1beta1",
];

/**
 * Reads a configuration.
 *
 * @param text YAML or JSON.
 * @param source How to call it in errors, such as the file's name.
 * @throws {EgressConfigError} Naming the field, what was seen and what was wanted.
 */
export function parseEgressConfig(text: string, source: string): EgressRoutes {
  try {
    return readRoutes(parseYaml(text));
  } catch (error) {
    if (error instanceof DocumentError) {
      throw refusal(source, error.message, error);
    }
    if (!(error instanceof FieldError)) throw error;
    throw refusal(source, withLine(text, error), error);
  }
}

function refusal(source: string, problem: string, cause: Error) {
  return new EgressConfigError(`Cannot use ${source}: ${problem}`, { cause });
}

function readRoutes(value: unknown): EgressRoutes {
  const root = new DocumentMap(
    value,
    [],
    ["apiVersion", "kind", "egressSelections"],
  );
  wordIn(root, "apiVersion", API_VERSIONS);
  wordIn(root, "kind", ["EgressSelectorConfiguration"]);
  if (!root.has("egressSelections")) {
    root.refuse("egressSelections", "wanted a list");
  }
  const routes = new Map<NetworkContext, TunnelRoute>();
  for (const [item, place] of root.list("egressSelections")) {
    const selection = new DocumentMap(item, place, ["name", "connection"]);
    const context = wordIn(selection, "name", NETWORK_CONTEXTS);
    if (routes.has(context)) selection.refuse("name", "it is there twice");
    routes.set(context, readConnection(selection));
  }
  return routes;
}

function readConnection(selection: DocumentMap): TunnelRoute {
  const connection = mapIn(selection, "connection", [
    "proxyProtocol",
    "transport",
  ]);
  const protocol = wordIn(
    connection,
    "proxyProtocol",
    ["GRPC", "HTTPConnect", "Direct"],
  );
  if (protocol === "Direct") {
    if (!connection.has("transport")) return { kind: "direct" };
    return connection.refuse("transport", 'it must not be with "Direct"');
  }
  return {
    kind: "tunnel",
    protocol: PROTOCOLS[protocol],
    address: readTransport(connection),
  };
}

const PROTOCOLS: Readonly<Record<"GRPC" | "HTTPConnect", FrontendProtocol>> = {
  GRPC: "grpc",
  HTTPConnect: "http-connect",
};

function readTransport(connection: DocumentMap): FrontendAddress {
  const transport = mapIn(connection, "transport", ["tcp", "uds"]);
  if (transport.has("tcp") === transport.has("uds")) {
    connection.refuse("transport", "it must have exactly one of tcp and uds");
  }
  if (transport.has("uds")) {
    const uds = mapIn(transport, "uds", ["udsName"]);
    return { kind: "unix", path: textIn(uds, "udsName") };
  }
  const tcp = mapIn(transport, "tcp", ["url", "tlsConfig"]);
  const { host, port } = readUrl(tcp);
  const tls = mapIn(tcp, "tlsConfig", [
    "caBundle",
    "clientKey",
    "clientCert",
    "tlsServerName",
  ]);
  return {
    kind: "tcp",
    host,
    port,
    tls: {
      caFile: textIn(tls, "caBundle"),
      certFile: textIn(tls, "clientCert"),
      keyFile: textIn(tls, "clientKey"),
      ...(tls.has("tlsServerName")
        ? { serverName: textIn(tls, "tlsServerName") }
        : {}),
    },
  };
}

/** Only https: a frontend on TCP always asks for a certificate. */
function readUrl(tcp: DocumentMap): { host: string; port: number } {
  const text = textIn(tcp, "url");
  const url = URL.canParse(text)
    ? new URL(text)
    : tcp.refuse("url", `saw "${text}", wanted https://host:port`);
  if (url.protocol !== "https:") {
    tcp.refuse("url", `it starts with ${url.protocol}//, wanted https://`);
  }
  return {
    host: withoutBrackets(url.hostname),
    port: url.port === "" ? 443 : Number(url.port),
  };
}

// Nothing here is left out at will, and nothing is empty.

function mapIn(
  fields: DocumentMap,
  key: string,
  known: readonly string[],
): DocumentMap {
  return fields.map(key, known) ?? fields.refuse(key, "it is missing");
}

function textIn(fields: DocumentMap, key: string): string {
  const text = fields.text(key) ?? fields.refuse(key, "it is missing");
  return text || fields.refuse(key, "it is empty");
}

function wordIn<Word extends string>(
  fields: DocumentMap,
  key: string,
  words: readonly Word[],
): Word {
  return fields.word(key, words) ??
    fields.refuse(key, `it is missing, wanted ${words.join(" or ")}`);
}
