/**
 * One service of a catalog document, with its ports, affinity and policy.
 *
 * @module
 */

import { parseIpAddress } from "../../proto/link/ip_address.ts";
import {
  type Affinity,
  BALANCES,
  DEFAULT_AFFINITY_TTL_MS,
  DEFAULT_NAMESPACE,
  type Endpoint,
  type HealthCheck,
  keyOf,
  type ListenAddress,
  NO_AFFINITY,
  NO_POLICY,
  type Service,
  type ServicePolicy,
  type ServicePort,
} from "../model.ts";
import { checkEndpoints, checkService, isPort } from "../validate.ts";
import { readEndpoint } from "./document_endpoint.ts";
import { FieldError, Fields, type Place } from "./document_fields.ts";
import { readRoutes } from "./document_routes.ts";

/** Of a health check that does not say. */
const HEALTH_INTERVAL_MS = 10_000;
const HEALTH_TIMEOUT_MS = 2_000;

/**
 * Reads one service and what is behind it.
 *
 * @throws {FieldError}
 */
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

/** Leaves out what was not said; the catalog knows only what is there. */
function withoutAbsent<T extends object>(
  fields: { readonly [Key in keyof T]: T[Key] | undefined },
): T;
function withoutAbsent(fields: object): object {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  );
}
