/**
 * How services and endpoints travel in the resources that a tunnel's discovery
 * server makes for a node proxy, so that nothing of them is lost on the way:
 * what xDS has a field for is there, and the rest is `tunnel` in the metadata
 * of clusters and of their endpoints.
 *
 * In a cluster (one for each port of a service, named `namespace/name:PORT`):
 * `filter_metadata.tunnel = {service, port}`, the whole service and the name of
 * the port. In a load assignment, which has one locality so that the order
 * stays: the address, the port, the weight, and {@linkcode endpointForm}.
 *
 * Unknown fields are ignored: a server may be newer than its proxies.
 *
 * @module
 */

import {
  AGENT_KEYS,
  BALANCES,
  DEFAULT_WEIGHT,
  DIRECT,
  type Ejection,
  type Endpoint,
  ENDPOINT_ENDS,
  type EndpointEnd,
  type EndpointPort,
  type EndpointState,
  type HealthCheck,
  type HealthTls,
  NO_AFFINITY,
  type Service,
  type ServiceListen,
  type ServicePolicy,
  type ServicePort,
  type StatusRange,
  type Via,
} from "./model/model.ts";
import { withoutAbsent } from "./model/plain_data.ts";
import type { Route } from "./model/routes.ts";

/** Where both kinds of metadata stand in `filter_metadata`. */
export const TUNNEL_METADATA = "tunnel";

/** What a `google.protobuf.Struct` can hold. */
export type StructForm = { readonly [field: string]: unknown };

/** A form that no tunnel server wrote, or a newer one; the rest of a sentence. */
export class FormError extends Error {
  override readonly name = "FormError";
}

/** `filter_metadata.tunnel` of the cluster of one port. */
export function clusterForm(service: Service, portName: string): StructForm {
  // Plain data already, and without fields that are undefined.
  return { service, port: portName };
}

/**
 * `filter_metadata.tunnel` of an endpoint in the assignment of one port.
 *
 * @returns `undefined`: address, port and weight say it all.
 */
export function endpointForm(
  { ports, state, node, zone, forZones, via }: Endpoint,
): StructForm | undefined {
  const [only] = ports;
  const form = {
    // The number of the only one is that of the assignment.
    ...only === undefined || ports.length > 1
      ? { ports }
      : only.name === ""
      ? {}
      : { port: only.name },
    ...state === "ready" ? {} : { state },
    ...node === undefined ? {} : { node },
    ...zone === undefined ? {} : { zone },
    ...forZones === undefined ? {} : { forZones },
    ...via.kind === "direct" ? {} : { via: via.agent ?? "agent" },
  };
  return Object.keys(form).length === 0 ? undefined : form;
}

/**
 * What {@linkcode clusterForm} has written.
 *
 * @throws {FormError}
 */
export function readClusterForm(
  form: unknown,
): { readonly service: Service; readonly port: string } {
  const { service, port } = object(form, "no metadata of a tunnel server");
  return {
    service: readService(object(service, "no service in its metadata")),
    port: text(port, "port"),
  };
}

/** What xDS has fields for. */
export interface PlainEndpoint {
  readonly address: string;
  readonly port: number;
  /** 0: none was given. */
  readonly weight: number;
}

/**
 * What {@linkcode endpointForm} has written.
 *
 * @throws {FormError}
 */
export function readEndpointForm(
  { address, port: number, weight }: PlainEndpoint,
  form: unknown,
): Endpoint {
  const { ports, port = "", state, node, zone, forZones, via } =
    form === undefined ? NO_FORM : object(form, "metadata that is no map");
  return {
    address,
    ports: ports === undefined
      ? [{ name: text(port, "port"), port: number }]
      : list(ports, "ports").map(readEndpointPort),
    state: state === undefined ? "ready" : word(STATES, state, "state"),
    ...node === undefined ? {} : { node: text(node, "node") },
    ...zone === undefined ? {} : { zone: text(zone, "zone") },
    ...forZones === undefined ? {} : {
      forZones: list(forZones, "forZones").map((each) => text(each, "zone")),
    },
    weight: weight === 0 ? DEFAULT_WEIGHT : weight,
    via: readVia(via),
  };
}

const NO_FORM: StructForm = {};

const STATES: readonly EndpointState[] = [
  "ready",
  "serving",
  "terminating",
  "unready",
];

function readService(form: StructForm): Service {
  return {
    namespace: text(form["namespace"], "namespace"),
    name: text(form["name"], "name"),
    ports: list(form["ports"], "ports").map(readPort),
    affinity: readAffinity(form["affinity"]),
    policy: readPolicy(object(form["policy"] ?? {}, "a policy that is no map")),
    ...form["announced"] === true ? { announced: true } : {},
  };
}

function readPort(value: unknown): ServicePort {
  const form = object(value, "a port that is no map");
  const { appProtocol, routes, listen } = form;
  return {
    name: text(form["name"], "name of a port"),
    port: number(form["port"], "port"),
    protocol: word(["tcp", "udp"], form["protocol"], "protocol"),
    ...appProtocol === undefined
      ? {}
      : { appProtocol: text(appProtocol, "appProtocol") },
    ...routes === undefined
      ? {}
      : { routes: list(routes, "routes").map(readRoute) },
    ...listen === undefined ? {} : { listen: readListen(listen) },
  };
}

function readRoute(value: unknown): Route {
  const { host, prefix, headers, to } = object(value, "a route that is no map");
  return {
    ...host === undefined ? {} : { host: text(host, "host of a route") },
    prefix: text(prefix, "prefix"),
    ...headers === undefined ? {} : {
      headers: list(headers, "headers").map((each) => {
        const { name, value } = object(each, "a header that is no map");
        return {
          name: text(name, "name of a header"),
          value: text(value, "value of a header"),
        };
      }),
    },
    to: list(to, "to").map((each) => {
      const { service, port, weight } = object(each, "a target that is no map");
      return {
        service: text(service, "service of a route"),
        port: number(port, "port of a route"),
        weight: number(weight, "weight of a route"),
      };
    }),
  };
}

function readListen(value: unknown): ServiceListen {
  const { host, port } = object(value, "a listen that is no map");
  return {
    ...host === undefined ? {} : { host: text(host, "host to listen on") },
    port: number(port, "port to listen on"),
  };
}

function readAffinity(value: unknown): Service["affinity"] {
  if (value === undefined) return NO_AFFINITY;
  const { kind, ttlMs } = object(value, "an affinity that is no map");
  const known = word(["none", "client-ip"], kind, "affinity");
  return known === "none"
    ? NO_AFFINITY
    : { kind: known, ttlMs: number(ttlMs, "ttlMs") };
}

function readPolicy(form: StructForm): ServicePolicy {
  const { balance, health } = form;
  const read = <T>(
    field: string,
    as: (value: unknown, what: string) => T,
  ): { readonly [field: string]: T } =>
    form[field] === undefined ? {} : { [field]: as(form[field], field) };
  return {
    ...balance === undefined
      ? {}
      : { balance: word(BALANCES, balance, "balance") },
    ...read("zoneAware", flag),
    ...read("nodeAware", flag),
    ...read("dialTimeoutMs", number),
    ...read("udpIdleMs", number),
    ...read("drainMs", number),
    ...read("onEndpointRemoved", endpointEnd),
    ...read("onEndpointDown", endpointEnd),
    ...read("endpointDrainMs", number),
    ...read("idleTimeoutMs", number),
    ...read("halfClosedTimeoutMs", number),
    ...read("userTimeoutMs", number),
    ...read("agentOnFailure", flag),
    ...withoutAbsent({ health: maybe(health, readHealth, "health") }),
    ...read("ejection", readEjection),
  };
}

function endpointEnd(value: unknown, what: string): EndpointEnd {
  return word(ENDPOINT_ENDS, value, what);
}

function readEjection(value: unknown): Partial<Ejection> {
  const { failures, timeMs } = object(value, "an ejection that is no map");
  return withoutAbsent({
    failures: maybe(failures, number, "failures of its ejection"),
    timeMs: maybe(timeMs, number, "timeMs of its ejection"),
  });
}

/** @returns `undefined`: it is of a kind that a newer server knows. */
function readHealth(value: unknown): HealthCheck | undefined {
  const form = object(value, "a health check that is no map");
  const { port, host } = form;
  const times = {
    intervalMs: number(form["intervalMs"], "intervalMs"),
    timeoutMs: number(form["timeoutMs"], "timeoutMs"),
    ...withoutAbsent({
      port: maybe(port, number, "port of its health"),
      rise: maybe(form["rise"], number, "rise of its health"),
      fall: maybe(form["fall"], number, "fall of its health"),
    }),
  };
  const kind = HEALTH_KINDS.find((kind) => kind === form["kind"]);
  if (kind === undefined) {
    text(form["kind"], "kind of its health");
    return undefined;
  }
  if (kind === "tcp") return { kind, ...times };
  const asked = withoutAbsent({
    host: maybe(host, text, "host of its health"),
    tls: maybe(form["tls"], readHealthTls, "tls of its health"),
  });
  if (kind === "grpc") {
    return {
      kind,
      service: text(form["service"], "service"),
      ...asked,
      ...times,
    };
  }
  const statuses = maybe(form["statuses"], list, "statuses")?.map(readStatus);
  return {
    kind,
    path: text(form["path"], "path"),
    ...withoutAbsent({ statuses }),
    ...asked,
    ...times,
  };
}

const HEALTH_KINDS = ["tcp", "http", "grpc"] as const;

function readStatus(value: unknown): StatusRange {
  const { first, last } = object(value, "a status that is no map");
  return {
    first: number(first, "first status"),
    last: number(last, "last status"),
  };
}

function readHealthTls(value: unknown): HealthTls {
  const { verify, serverName } = object(value, "a tls that is no map");
  return withoutAbsent({
    verify: maybe(verify, flag, "verify of its health"),
    serverName: maybe(serverName, text, "serverName of its health"),
  });
}

function readEndpointPort(value: unknown): EndpointPort {
  const { name, port } = object(value, "a port that is no map");
  return { name: text(name, "name of a port"), port: number(port, "port") };
}

function readVia(value: unknown): Via {
  if (value === undefined) return DIRECT;
  if (value === "agent") return { kind: "agent" };
  const form = object(value, "a road that is neither agent nor a map");
  return {
    kind: "agent",
    agent: {
      key: word(AGENT_KEYS, form["key"], "key of an agent"),
      value: text(form["value"], "value of an agent"),
    },
  };
}

function maybe<T>(
  value: unknown,
  as: (value: unknown, what: string) => T,
  what: string,
): T | undefined {
  return value === undefined ? undefined : as(value, what);
}

// --- Plain data of others --------------------------------------------------------

function object(value: unknown, seen: string): StructForm {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as StructForm;
  }
  throw new FormError(`it has ${seen}`);
}

function list(value: unknown, what: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw wrong(what, value, "a list");
}

function text(value: unknown, what: string): string {
  if (typeof value === "string") return value;
  throw wrong(what, value, "a text");
}

function number(value: unknown, what: string): number {
  if (typeof value === "number") return value;
  throw wrong(what, value, "a number");
}

function flag(value: unknown, what: string): boolean {
  if (typeof value === "boolean") return value;
  throw wrong(what, value, "true or false");
}

function word<const W extends string>(
  words: readonly W[],
  value: unknown,
  what: string,
): W {
  const found = words.find((each) => each === value);
  if (found !== undefined) return found;
  throw wrong(what, value, `one of ${words.join(", ")}`);
}

/** A part of a value is enough to know it by. */
const SHOWN_MAX = 60;

function wrong(what: string, value: unknown, wanted: string): FormError {
  const seen = (JSON.stringify(value) ?? "nothing").slice(0, SHOWN_MAX);
  return new FormError(`its ${what} is ${seen}, wanted ${wanted}`);
}
