/**
 * One service of a catalog document, with its ports and affinity.
 *
 * @module
 */

import { parseIpAddress } from "../../../../proto/peer/ip_address.ts";
import {
  type Affinity,
  DEFAULT_AFFINITY_TTL_MS,
  DEFAULT_NAMESPACE,
  type Endpoint,
  keyOf,
  NO_AFFINITY,
  type Service,
  type ServiceListen,
  type ServicePort,
} from "../../model/model.ts";
import { checkEndpoints, checkService, isPort } from "../../model/validate.ts";
import { readEndpoint } from "./document_endpoint.ts";
import {
  DocumentMap,
  type DocumentPath,
  FieldError,
} from "../../../../platform/documents/document_map.ts";
import { POLICY_FIELDS, readServicePolicy } from "./document_policy.ts";
import { readRoutes } from "./document_routes.ts";

/** A service and what is behind it. */
export interface ReadService {
  readonly service: Service;
  /** Absent: it says nothing of endpoints, so another source's count. */
  readonly behind?: readonly Endpoint[];
}

/**
 * Reads one service and what is behind it.
 *
 * @throws {FieldError}
 */
export function readService(value: unknown, place: DocumentPath): ReadService {
  const fields = new DocumentMap(value, place, [
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
    policy: readServicePolicy(fields.map("policy", POLICY_FIELDS), ports),
  };
  if (service.ports.length === 0) fields.refuse("ports", "wanted one at least");
  const behind = fields.list("endpoints")
    .map(([item, at]) => readEndpoint(item, at, service.ports));
  const problem = checkService(service) ??
    checkEndpoints({ service: keyOf(service), endpoints: behind });
  if (problem !== undefined) throw new FieldError(place, problem);
  return fields.has("endpoints") ? { service, behind } : { service };
}

function readPort(
  value: unknown,
  place: DocumentPath,
  namespace: string,
): ServicePort {
  const fields = new DocumentMap(value, place, [
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
function readListen(fields: DocumentMap): ServiceListen | undefined {
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

function readAffinity(fields: DocumentMap): Affinity {
  const affinity = fields.map("affinity", ["clientIP"]);
  if (affinity === undefined || !affinity.has("clientIP")) return NO_AFFINITY;
  const clientIp = affinity.map("clientIP", ["ttl"])!;
  const ttlMs = clientIp.duration("ttl") ?? DEFAULT_AFFINITY_TTL_MS;
  return { kind: "client-ip", ttlMs };
}
