/**
 * kube-apiserver's `EgressSelectorConfiguration`: which road a network context
 * takes.
 *
 * Read as strictly as kube-apiserver reads it: an unknown field is an error,
 * because a misspelt one would silently send traffic the wrong way.
 *
 * @module
 */

import { parse } from "../std/yaml.ts";
import type { FrontendAddress, FrontendProtocol, Road } from "./road.ts";

/** The network contexts of kube-apiserver. */
export const NETWORK_CONTEXTS = ["controlplane", "etcd", "cluster"] as const;

/** One of {@linkcode NETWORK_CONTEXTS}. */
export type NetworkContext = typeof NETWORK_CONTEXTS[number];

/** Roads by context; what a file does not name goes direct (as upstream). */
export type EgressRoads = ReadonlyMap<NetworkContext, Road>;

/** The file says something that cannot be followed. */
export class EgressConfigError extends Error {
  /** Tells it from other errors, also by its text. */
  override readonly name = "EgressConfigError";
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
export function parseEgressConfig(text: string, source: string): EgressRoads {
  const at = new Field(source, parseYaml(text, source));
  const root = at.fields("apiVersion", "kind", "egressSelections");
  root.apiVersion.oneOf(API_VERSIONS);
  root.kind.oneOf(["EgressSelectorConfiguration"]);
  const roads = new Map<NetworkContext, Road>();
  for (const item of root.egressSelections.list()) {
    const { name, connection } = item.fields("name", "connection");
    const context = name.oneOf(NETWORK_CONTEXTS);
    if (roads.has(context)) throw name.error("is there twice");
    roads.set(context, readConnection(connection));
  }
  return roads;
}

function readConnection(field: Field): Road {
  const { proxyProtocol, transport } = field.fields(
    "proxyProtocol",
    "transport",
  );
  const protocol = proxyProtocol.oneOf(["GRPC", "HTTPConnect", "Direct"]);
  if (protocol === "Direct") {
    if (transport.isPresent) throw transport.error('must not be with "Direct"');
    return { kind: "direct" };
  }
  return {
    kind: "tunnel",
    protocol: PROTOCOLS[protocol],
    address: readTransport(transport),
  };
}

const PROTOCOLS: Readonly<Record<"GRPC" | "HTTPConnect", FrontendProtocol>> = {
  GRPC: "grpc",
  HTTPConnect: "http-connect",
};

function readTransport(field: Field): FrontendAddress {
  const { tcp, uds } = field.fields("tcp", "uds");
  if (tcp.isPresent === uds.isPresent) {
    throw field.error("must have exactly one of tcp and uds");
  }
  if (uds.isPresent) {
    return { kind: "unix", path: uds.fields("udsName").udsName.text() };
  }
  const { url, tlsConfig } = tcp.fields("url", "tlsConfig");
  const { host, port } = readUrl(url);
  const tls = tlsConfig.fields(
    "caBundle",
    "clientKey",
    "clientCert",
    "tlsServerName",
  );
  const serverName = tls.tlsServerName.optionalText();
  return {
    kind: "tcp",
    host,
    port,
    tls: {
      caFile: tls.caBundle.text(),
      certFile: tls.clientCert.text(),
      keyFile: tls.clientKey.text(),
      ...(serverName === undefined ? {} : { serverName }),
    },
  };
}

/** Only https: a frontend on TCP always asks for a certificate. */
function readUrl(field: Field): { host: string; port: number } {
  const text = field.text();
  if (!URL.canParse(text)) {
    throw field.error(`is ${JSON.stringify(text)}, wanted https://host:port`);
  }
  const url = new URL(text);
  if (url.protocol !== "https:") {
    throw field.error(`starts with ${url.protocol}//, wanted https://`);
  }
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? 443 : Number(url.port),
  };
}

function parseYaml(text: string, source: string): unknown {
  try {
    return parse(text);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new EgressConfigError(`Cannot read ${source}: ${why}`, { cause });
  }
}

/** A value in the file and the way to it, so that errors can name it. */
class Field {
  readonly #path: string;
  readonly #value: unknown;

  constructor(path: string, value: unknown) {
    this.#path = path;
    this.#value = value;
  }

  get isPresent(): boolean {
    return this.#value !== undefined && this.#value !== null;
  }

  error(problem: string): EgressConfigError {
    return new EgressConfigError(`Cannot use ${this.#path}: it ${problem}`);
  }

  /** The fields of an object that has these and no others. */
  fields<N extends string>(...names: readonly N[]): Readonly<Record<N, Field>> {
    const value = this.#value;
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw this.error(`is ${typeName(value)}, wanted an object`);
    }
    const given = new Map<string, unknown>(Object.entries(value));
    const known: readonly string[] = names;
    const unknown = [...given.keys()].find((name) => !known.includes(name));
    if (unknown !== undefined) {
      throw this.error(
        `has an unknown field "${unknown}", known: ${names.join(", ")}`,
      );
    }
    const fields = names.map((name) =>
      [name, new Field(`${this.#path}: ${name}`, given.get(name))] as const
    );
    return Object.fromEntries(fields) as Record<N, Field>;
  }

  list(): Field[] {
    if (!Array.isArray(this.#value)) {
      throw this.error(`is ${typeName(this.#value)}, wanted a list`);
    }
    return this.#value.map((value, index) =>
      new Field(`${this.#path}[${index}]`, value)
    );
  }

  text(): string {
    if (typeof this.#value !== "string" || this.#value === "") {
      throw this.error(`is ${typeName(this.#value)}, wanted a text`);
    }
    return this.#value;
  }

  optionalText(): string | undefined {
    return this.isPresent ? this.text() : undefined;
  }

  oneOf<T extends string>(allowed: readonly T[]): T {
    const found = allowed.find((value) => value === this.#value);
    if (found !== undefined) return found;
    throw this.error(
      `is ${JSON.stringify(this.#value) ?? "missing"}, wanted ${
        allowed.join(" or ")
      }`,
    );
  }
}

function typeName(value: unknown): string {
  if (value === undefined || value === null) return "missing";
  if (value === "") return "empty";
  return Array.isArray(value) ? "a list" : `a ${typeof value}`;
}
