/**
 * Services and endpoints as people write them down, in YAML or JSON: the format
 * of the file source and of what the HTTP source fetches. Described, with an
 * example, in docs/catalog.md.
 *
 * A document is taken whole or not at all; what is wrong with it is said with
 * line numbers.
 *
 * Reading order: `readCatalogDocument`, `readService`, `readEndpoint`.
 *
 * @module
 */

import { parse as parseYaml } from "@std/yaml";
import { parseIpAddress, parseIpPrefix } from "../../proto/link/ip_address.ts";
import {
  type Affinity,
  AGENT_KEYS,
  BALANCES,
  DEFAULT_AFFINITY_TTL_MS,
  DEFAULT_NAMESPACE,
  DEFAULT_WEIGHT,
  DIRECT,
  type Endpoint,
  type EndpointPort,
  type HealthCheck,
  keyOf,
  type ListenAddress,
  NO_AFFINITY,
  NO_POLICY,
  type Service,
  type ServiceEndpoints,
  type ServicePolicy,
  type ServicePort,
  type Via,
  WEIGHT_MAX,
} from "../model.ts";
import {
  canonicalAddress,
  checkEndpoints,
  checkService,
  ENDPOINTS_MAX,
  isPort,
  SERVICES_MAX,
} from "../validate.ts";
import { FieldError, Fields, kindOf, type Place } from "./document_fields.ts";
import { readRoutes } from "./document_routes.ts";
import { findLines } from "./line_finder.ts";

/** 20,000 services with 10 endpoints each, written out, are half of it. */
export const DOCUMENT_OCTETS_MAX = 64 * 1024 * 1024;

/** Problems that are named before the rest is only counted. */
const PROBLEMS_NAMED_MAX = 5;

/** Of a health check that does not say. */
const HEALTH_INTERVAL_MS = 10_000;
const HEALTH_TIMEOUT_MS = 2_000;

/** A document that cannot be used; the message is for people. */
export class CatalogDocumentError extends Error {
  override readonly name = "CatalogDocumentError";
}

/** What a document says. */
export interface CatalogDocument {
  readonly services: readonly Service[];
  readonly endpoints: readonly ServiceEndpoints[];
}

/**
 * Reads a document. An empty one, or one without `services`, is refused: that
 * is what a file looks like while it is written.
 *
 * @throws {CatalogDocumentError} With lines, such as `line 7: services[0].port:
 *   there is no such field …`.
 */
export async function readCatalogDocument(
  text: string,
): Promise<CatalogDocument> {
  const value = parse(text);
  const problems: FieldError[] = [];
  const document = readDocument(value, (problem) => problems.push(problem));
  if (problems.length === 0) return document;
  const named = problems.slice(0, PROBLEMS_NAMED_MAX);
  const lines = await findLines(text, named.map(({ place }) => place));
  const texts = named.map(({ message }, i) => `line ${lines[i]}: ${message}`);
  const rest = problems.length - named.length;
  if (rest > 0) texts.push(`and ${rest} more problems`);
  throw new CatalogDocumentError(texts.join("; "));
}

function parse(text: string): unknown {
  // Many times as fast as YAML, of which JSON is a part.
  if (/^\s*\{/.test(text)) {
    try {
      return JSON.parse(text);
    } catch {
      // Either flow-style YAML, or what is wrong is said below, with its line.
    }
  }
  try {
    return parseYaml(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const [first = ""] = error.message.split("\n");
    throw new CatalogDocumentError(
      `it is neither YAML nor JSON: ${first.replace(/:\s*$/, "")}`,
    );
  }
}

/** Says each problem; what is returned counts only if there was none. */
function readDocument(
  value: unknown,
  onProblem: (problem: FieldError) => void,
): CatalogDocument {
  const services: Service[] = [];
  const endpoints: ServiceEndpoints[] = [];
  const trying = (read: () => void) => {
    try {
      read();
    } catch (error) {
      if (!(error instanceof FieldError)) throw error;
      onProblem(error);
    }
  };
  trying(() => {
    const fields = new Fields(value, [], ["services"]);
    if (!fields.has("services") || !Array.isArray(fields.value("services"))) {
      throw new FieldError([], "wanted a list of services; [] for none");
    }
    const items = fields.list("services");
    if (items.length > SERVICES_MAX) {
      fields.refuse("services", `${items.length}; at most ${SERVICES_MAX}`);
    }
    const places = new Map<string, Place>();
    let endpointCount = 0;
    for (const [item, place] of items) {
      trying(() => {
        const { service, behind } = readService(item, place);
        const key = keyOf(service);
        if (places.has(key)) {
          throw new FieldError(place, `${key} is there twice`);
        }
        places.set(key, place);
        endpointCount += behind.length;
        // One list can stand in many places by YAML's aliases.
        if (endpointCount > ENDPOINTS_MAX) {
          fields.refuse("services", `more than ${ENDPOINTS_MAX} endpoints`);
        }
        services.push(service);
        endpoints.push({ service: key, endpoints: behind });
      });
      if (endpointCount > ENDPOINTS_MAX) break;
    }
  });
  return { services, endpoints };
}

// --- Services --------------------------------------------------------------------

export function readService(
  value: unknown,
  place: Place,
): { service: Service; behind: readonly Endpoint[] } {
  const fields = new Fields(value, place, [
    "name",
    "namespace",
    "ports",
    "affinity",
    "policy",
    "endpoints",
  ]);
  const namespace = fields.text("namespace") ?? DEFAULT_NAMESPACE;
  const ports = fields.list("ports")
    .map(([item, at]) => readPort(item, at, namespace));
  const service: Service = {
    namespace,
    name: fields.text("name") ?? fields.refuse("name", "wanted a name"),
    ports,
    affinity: readAffinity(fields),
    policy: readPolicy(fields, ports),
  };
  if (service.ports.length === 0) fields.refuse("ports", "wanted one at least");
  const behind = fields.list("endpoints")
    .map(([item, at]) => readEndpoint(item, at, service.ports));
  const problem = checkService(service) ??
    checkEndpoints({ service: keyOf(service), endpoints: behind });
  if (problem !== undefined) throw new FieldError(place, problem);
  return { service, behind };
}

function readPort(
  value: unknown,
  place: Place,
  namespace: string,
): ServicePort {
  const fields = new Fields(value, place, [
    "name",
    "port",
    "protocol",
    "appProtocol",
    "routes",
    "listen",
  ]);
  const appProtocol = fields.text("appProtocol");
  const routes = readRoutes(fields, namespace);
  const listen = readListen(fields);
  return {
    name: fields.text("name") ?? "",
    port: fields.number("port", 1, 65_535) ??
      fields.refuse("port", "wanted a number"),
    protocol: fields.word("protocol", ["tcp", "udp"]) ?? "tcp",
    ...appProtocol === undefined ? {} : { appProtocol },
    ...routes === undefined ? {} : { routes },
    ...listen === undefined ? {} : { listen },
  };
}

/** `8080`, `127.0.0.1:8080`, `[::1]:8080`. */
function readListen(fields: Fields): ListenAddress | undefined {
  const value = fields.value("listen");
  if (value === undefined) return undefined;
  const match = /^(?:\[([^\]]+)\]:|([^:]+):)?(\d{1,5})$/.exec(String(value));
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (
    !isPort(port) || (host !== undefined && parseIpAddress(host) === undefined)
  ) {
    fields.refuse(
      "listen",
      "wanted a port, or ADDRESS:PORT with an IP address",
    );
  }
  return host === undefined ? { port } : { host, port };
}

function readAffinity(fields: Fields): Affinity {
  const affinity = fields.map("affinity", ["clientIP"]);
  if (affinity === undefined || !affinity.has("clientIP")) return NO_AFFINITY;
  const clientIp = affinity.map("clientIP", ["ttl"])!;
  const ttlMs = clientIp.duration("ttl") ?? DEFAULT_AFFINITY_TTL_MS;
  return { kind: "client-ip", ttlMs };
}

function readPolicy(
  fields: Fields,
  ports: readonly ServicePort[],
): ServicePolicy {
  const policy = fields.map("policy", [
    "balance",
    "zoneAware",
    "dialTimeout",
    "udpIdle",
    "drain",
    "agentOnFailure",
    "health",
  ]);
  if (policy === undefined) return NO_POLICY;
  return withoutAbsent<ServicePolicy>({
    balance: policy.word("balance", BALANCES),
    zoneAware: policy.flag("zoneAware"),
    dialTimeoutMs: policy.duration("dialTimeout"),
    udpIdleMs: policy.duration("udpIdle"),
    drainMs: policy.duration("drain", 0),
    agentOnFailure: policy.flag("agentOnFailure"),
    health: readHealth(policy, ports),
  });
}

function readHealth(
  policy: Fields,
  ports: readonly ServicePort[],
): HealthCheck | undefined {
  const health = policy.map("health", ["tcp", "http", "interval", "timeout"]);
  if (health === undefined) return undefined;
  if (health.has("tcp") === health.has("http")) {
    policy.refuse("health", "wanted either tcp: {} or http: {path: /…}");
  }
  const tcp = health.map("tcp", ["port"]);
  const how = tcp ?? health.map("http", ["path", "port"])!;
  const port = how.number("port", 1, 65_535);
  if (port === undefined && ports.every(({ protocol }) => protocol === "udp")) {
    policy.refuse(
      "health",
      "nothing says whether a UDP port lives; wanted a TCP port of its " +
        "endpoints to ask: tcp: {port: …} or http: {port: …}",
    );
  }
  const common = {
    intervalMs: health.duration("interval") ?? HEALTH_INTERVAL_MS,
    timeoutMs: health.duration("timeout") ?? HEALTH_TIMEOUT_MS,
    ...port === undefined ? {} : { port },
  };
  return tcp !== undefined
    ? { kind: "tcp", ...common }
    : { kind: "http", path: how.text("path") ?? "/", ...common };
}

// --- Endpoints -------------------------------------------------------------------

const ENDPOINT_FIELDS = [
  ...["address", "port", "ports", "state"],
  ...["node", "zone", "weight", "via"],
] as const;

const STATES = ["ready", "serving", "terminating", "unready"] as const;

export function readEndpoint(
  value: unknown,
  place: Place,
  of: readonly ServicePort[],
): Endpoint {
  const fields = new Fields(value, place, ENDPOINT_FIELDS);
  const given = fields.text("address") ??
    fields.refuse("address", "wanted an IP address or a host name");
  const node = fields.text("node");
  const zone = fields.text("zone");
  // Not `withoutAbsent`: of these there are tens of thousands.
  return {
    address: canonicalAddress(given) ?? fields.refuse(
      "address",
      `"${given}" is neither an IP address nor a host name; ports go to port`,
    ),
    ports: readEndpointPorts(fields, of),
    state: fields.word("state", STATES) ?? "ready",
    ...(node === undefined ? {} : { node }),
    ...(zone === undefined ? {} : { zone }),
    weight: fields.number("weight", 1, WEIGHT_MAX) ?? DEFAULT_WEIGHT,
    via: readVia(fields),
  };
}

/** Without a word about ports they are the service's own. */
function readEndpointPorts(
  fields: Fields,
  of: readonly ServicePort[],
): readonly EndpointPort[] {
  const names = of.map(({ name }) => name);
  if (fields.has("port")) {
    if (fields.has("ports")) fields.refuse("port", "there is ports as well");
    const port = fields.number("port", 1, 65_535)!;
    const [name, ...others] = names;
    if (name !== undefined && others.length === 0) return [{ name, port }];
    fields.refuse(
      "port",
      `the service has several; wanted ports: {NAME: PORT}`,
    );
  }
  const ports = fields.map("ports", names);
  if (ports === undefined) return of.map(({ name, port }) => ({ name, port }));
  return names.flatMap((name) => {
    const port = ports.number(name, 1, 65_535);
    return port === undefined ? [] : [{ name, port }];
  });
}

/** `direct`, `agent`, or which agent: `{host: node1}`. */
function readVia(fields: Fields): Via {
  const value = fields.value("via");
  if (value === undefined || value === "direct") return DIRECT;
  if (value === "agent") return { kind: "agent" };
  if (typeof value === "string" || typeof value !== "object") {
    const seen = typeof value === "string" ? `"${value}"` : kindOf(value);
    fields.refuse("via", `saw ${seen}, wanted direct, agent, or {host: NODE}`);
  }
  const via = fields.map("via", AGENT_KEYS)!;
  const [key, ...others] = AGENT_KEYS.filter((name) => via.has(name));
  if (key === undefined || others.length > 0) {
    fields.refuse("via", `wanted one of ${AGENT_KEYS.join(", ")}`);
  }
  const text = via.text(key)!;
  if (text === "" || (key === "cidr" && parseIpPrefix(text) === undefined)) {
    via.refuse(key, `"${text}" names no agent`);
  }
  return { kind: "agent", agent: { key, value: text } };
}

/** Leaves out what was not said; the catalog knows only what is there. */
function withoutAbsent<T extends object>(
  fields: { readonly [Key in keyof T]: T[Key] | undefined },
): T;
function withoutAbsent(fields: object): object {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  );
}
