/**
 * How services and endpoints travel in the resources that a tunnel's discovery
 * server makes for a node proxy, so that nothing of them is lost on the way:
 * what xDS has a field for is there, and the rest is `tunnel` in the metadata
 * of clusters and of their endpoints.
 *
 * In a cluster (one for each port of a service, named `namespace/name:PORT`):
 * `filter_metadata.tunnel = {service, port}`, the whole service and the name of
 * the port. In a load assignment, which has one locality so that the order
 * stays: the address, the port, the weight, and {@linkcode endpointMetadata}.
 *
 * Unknown fields are ignored: a server may be newer than its proxies.
 *
 * @module
 */

import { DocumentMap } from "../../platform/documents/document_map.ts";
import {
  AGENT_KEYS,
  BALANCES,
  DEFAULT_WEIGHT,
  DIRECT,
  type Ejection,
  type Endpoint,
  ENDPOINT_ENDS,
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
export type StructJson = { readonly [field: string]: unknown };

/** What no tunnel server wrote; the rest of a sentence. */
export class MetadataError extends Error {
  override readonly name = "MetadataError";
}

/** `filter_metadata.tunnel` of the cluster of one port. */
export function clusterMetadata(
  service: Service,
  portName: string,
): StructJson {
  // Plain data already, and without fields that are undefined.
  return { service, port: portName };
}

/**
 * `filter_metadata.tunnel` of an endpoint in the assignment of one port.
 *
 * @returns `undefined`: address, port and weight say it all.
 */
export function endpointMetadata(
  { ports, state, node, zone, forZones, via }: Endpoint,
): StructJson | undefined {
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
 * What {@linkcode clusterMetadata} has written.
 *
 * @throws {MetadataError | FieldError}
 */
export function readClusterMetadata(
  form: unknown,
): { readonly service: Service; readonly port: string } {
  if (form === undefined) {
    throw new MetadataError("it has no metadata of a tunnel server");
  }
  const fields = new DocumentMap(form, []);
  return {
    service: readService(mapIn(fields, "service")),
    port: textIn(fields, "port"),
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
 * What {@linkcode endpointMetadata} has written.
 *
 * @throws {FieldError}
 */
export function readEndpointMetadata(
  { address, port, weight }: PlainEndpoint,
  form: unknown,
): Endpoint {
  const fields = new DocumentMap(form ?? {}, []);
  const node = fields.text("node");
  const zone = fields.text("zone");
  const forZones = fields.texts("forZones")?.map(([text]) => text);
  return {
    address,
    ports: fields.has("ports")
      ? mapsIn(fields, "ports").map(readEndpointPort)
      : [{ name: fields.text("port") ?? "", port }],
    state: fields.word("state", STATES) ?? "ready",
    ...node === undefined ? {} : { node },
    ...zone === undefined ? {} : { zone },
    ...forZones === undefined ? {} : { forZones },
    weight: weight === 0 ? DEFAULT_WEIGHT : weight,
    via: readVia(fields),
  };
}

const STATES: readonly EndpointState[] = [
  "ready",
  "serving",
  "terminating",
  "unready",
];

function readService(form: DocumentMap): Service {
  return {
    namespace: textIn(form, "namespace"),
    name: textIn(form, "name"),
    ports: mapsIn(form, "ports").map(readPort),
    affinity: readAffinity(form.map("affinity")),
    policy: readPolicy(form.map("policy")),
    ...form.value("announced") === true ? { announced: true } : {},
  };
}

function readPort(form: DocumentMap): ServicePort {
  const routes = form.has("routes")
    ? mapsIn(form, "routes").map(readRoute)
    : undefined;
  return {
    name: textIn(form, "name"),
    port: numberIn(form, "port"),
    protocol: form.word("protocol", ["tcp", "udp"]) ??
      missing(form, "protocol"),
    ...withoutAbsent({
      appProtocol: form.text("appProtocol"),
      routes,
      listen: readListen(form.map("listen")),
    }),
  };
}

function readRoute(form: DocumentMap): Route {
  const headers = form.has("headers")
    ? mapsIn(form, "headers").map((header) => ({
      name: textIn(header, "name"),
      value: textIn(header, "value"),
    }))
    : undefined;
  return {
    ...withoutAbsent({ host: form.text("host"), headers }),
    prefix: textIn(form, "prefix"),
    to: mapsIn(form, "to").map((target) => ({
      service: textIn(target, "service"),
      port: numberIn(target, "port"),
      weight: numberIn(target, "weight"),
    })),
  };
}

function readListen(form: DocumentMap | undefined): ServiceListen | undefined {
  return form && {
    ...withoutAbsent({ host: form.text("host") }),
    port: numberIn(form, "port"),
  };
}

function readAffinity(form: DocumentMap | undefined): Service["affinity"] {
  if (form === undefined) return NO_AFFINITY;
  const kind = form.word("kind", ["none", "client-ip"]) ??
    missing(form, "kind");
  return kind === "none"
    ? NO_AFFINITY
    : { kind, ttlMs: numberIn(form, "ttlMs") };
}

function readPolicy(form: DocumentMap | undefined): ServicePolicy {
  if (form === undefined) return {};
  return withoutAbsent({
    balance: form.word("balance", BALANCES),
    zoneAware: form.flag("zoneAware"),
    nodeAware: form.flag("nodeAware"),
    dialTimeoutMs: number(form, "dialTimeoutMs"),
    udpIdleMs: number(form, "udpIdleMs"),
    drainMs: number(form, "drainMs"),
    onEndpointRemoved: form.word("onEndpointRemoved", ENDPOINT_ENDS),
    onEndpointDown: form.word("onEndpointDown", ENDPOINT_ENDS),
    endpointDrainMs: number(form, "endpointDrainMs"),
    idleTimeoutMs: number(form, "idleTimeoutMs"),
    halfClosedTimeoutMs: number(form, "halfClosedTimeoutMs"),
    userTimeoutMs: number(form, "userTimeoutMs"),
    agentOnFailure: form.flag("agentOnFailure"),
    health: readHealth(form.map("health")),
    ejection: readEjection(form.map("ejection")),
  });
}

function readEjection(
  form: DocumentMap | undefined,
): Partial<Ejection> | undefined {
  return form && withoutAbsent({
    failures: number(form, "failures"),
    timeMs: number(form, "timeMs"),
  });
}

/** @returns `undefined`: there is none, or of a kind that newer servers know. */
function readHealth(form: DocumentMap | undefined): HealthCheck | undefined {
  if (form === undefined) return undefined;
  const times = {
    intervalMs: numberIn(form, "intervalMs"),
    timeoutMs: numberIn(form, "timeoutMs"),
    ...withoutAbsent({
      port: number(form, "port"),
      rise: number(form, "rise"),
      fall: number(form, "fall"),
    }),
  };
  const kind = textIn(form, "kind");
  if (kind === "tcp") return { kind, ...times };
  const asked = withoutAbsent({
    host: form.text("host"),
    tls: readHealthTls(form.map("tls")),
  });
  if (kind === "grpc") {
    return { kind, service: textIn(form, "service"), ...asked, ...times };
  }
  if (kind !== "http") return undefined;
  const statuses = form.has("statuses")
    ? mapsIn(form, "statuses").map(readStatus)
    : undefined;
  return {
    kind,
    path: textIn(form, "path"),
    ...withoutAbsent({ statuses }),
    ...asked,
    ...times,
  };
}

function readStatus(form: DocumentMap): StatusRange {
  return { first: numberIn(form, "first"), last: numberIn(form, "last") };
}

function readHealthTls(form: DocumentMap | undefined): HealthTls | undefined {
  return form && withoutAbsent({
    verify: form.flag("verify"),
    serverName: form.text("serverName"),
  });
}

function readEndpointPort(form: DocumentMap): EndpointPort {
  return { name: textIn(form, "name"), port: numberIn(form, "port") };
}

function readVia(endpoint: DocumentMap): Via {
  const value = endpoint.value("via");
  if (value === undefined) return DIRECT;
  if (value === "agent") return { kind: "agent" };
  const form = mapIn(endpoint, "via");
  return {
    kind: "agent",
    agent: {
      key: form.word("key", AGENT_KEYS) ?? missing(form, "key"),
      value: textIn(form, "value"),
    },
  };
}

// --- What must be there ------------------------------------------------------------

function missing(form: DocumentMap, key: string): never {
  return form.refuse(key, "it is missing");
}

function textIn(form: DocumentMap, key: string): string {
  return form.text(key) ?? missing(form, key);
}

function mapIn(form: DocumentMap, key: string): DocumentMap {
  return form.map(key) ?? missing(form, key);
}

/** What it may be is for who checks the whole. */
function number(form: DocumentMap, key: string): number | undefined {
  return form.number(key, 0, Number.MAX_SAFE_INTEGER);
}

function numberIn(form: DocumentMap, key: string): number {
  return number(form, key) ?? missing(form, key);
}

function mapsIn(form: DocumentMap, key: string): readonly DocumentMap[] {
  if (!form.has(key)) missing(form, key);
  return form.list(key).map(([item, place]) => new DocumentMap(item, place));
}
