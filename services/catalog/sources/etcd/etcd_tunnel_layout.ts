/**
 * Our own keys in etcd (docs/services.md):
 *
 * ```
 * /tunnel/services/NAMESPACE/NAME        a service, as in the file source
 * /tunnel/endpoints/NAMESPACE/NAME/ID    one endpoint of it, as there
 * ```
 *
 * An endpoint has a key of its own so that it can die with a lease of its own.
 *
 * @module
 */

import { type Endpoint, keyOf, type Service } from "../../model/model.ts";
import { checkEndpoints } from "../../model/validate.ts";
import { ENDPOINT, endpointOf, SERVICE } from "../document/service_shape.ts";
import { FieldError } from "../../../../platform/documents/field_error.ts";
import { as, readShape } from "../../../../platform/documents/shape.ts";
import {
  type EtcdLayout,
  LayoutError,
  type ParsedKey,
  parseObject,
} from "./etcd_entries.ts";

/** Where our keys are, by default. */
export const TUNNEL_PREFIX = "/tunnel/";

/** @param prefix Ends with `/`. */
export function tunnelLayout(prefix = TUNNEL_PREFIX): EtcdLayout {
  return {
    sourceName: "etcd",
    prefix,
    placeOf: (key) => placeOf(key, prefix),
    readService: readTunnelService,
    readEndpoints: (key, text, of) => [readTunnelEndpoint(key, text, of)],
  };
}

export function serviceKeyOf(prefix: string, service: string): string {
  return `${prefix}services/${service}`;
}

/** @param id Tells it from the service's other endpoints. */
export function endpointKeyIn(
  prefix: string,
  service: string,
  id: string,
): string {
  return `${prefix}endpoints/${service}/${id}`;
}

function placeOf(key: string, prefix: string): ParsedKey {
  const [kind, namespace, name, part, ...rest] = key.slice(prefix.length)
    .split("/");
  const service = `${namespace}/${name}`;
  if (rest.length === 0 && namespace && name) {
    if (kind === "services" && part === undefined) {
      return { kind: "service", service };
    }
    if (kind === "endpoints" && part) return { kind, service };
  }
  throw new LayoutError(
    `wanted ${serviceKeyOf(prefix, "NAMESPACE/NAME")} or ` +
      endpointKeyIn(prefix, "NAMESPACE/NAME", "ID"),
  );
}

function readTunnelService(
  key: string,
  place: ParsedKey,
  text: string,
): Service {
  const value = parseObject(text);
  const [namespace, name] = place.service.split("/");
  for (const [field, wanted] of [["namespace", namespace], ["name", name]]) {
    const seen = value[field!] ?? wanted;
    if (seen !== wanted) {
      throw new LayoutError(
        `its ${field} is ${JSON.stringify(seen)}, its key says "${wanted}"`,
      );
    }
  }
  if (Object.hasOwn(value, "endpoints")) {
    throw new LayoutError("it has endpoints; those have keys of their own");
  }
  return refusing(() => {
    const given = { ...value, namespace, name };
    return readShape(SERVICE, given, [key]).service;
  });
}

function readTunnelEndpoint(
  key: string,
  text: string,
  of: Service | undefined,
): Endpoint {
  const value = parseObject(text);
  return refusing(() => {
    const ports = of?.ports ?? portsSaid(value);
    const shape = as(ENDPOINT, (given, at) => endpointOf(given, ports, at));
    const endpoint = readShape(shape, value, [key]);
    const service = of === undefined ? "default/unknown" : keyOf(of);
    const problem = checkEndpoints({ service, endpoints: [endpoint] });
    if (problem !== undefined) throw new LayoutError(problem);
    return endpoint;
  });
}

/**
 * Another source may describe the service: then the endpoint's own values
 * count.
 */
function portsSaid(
  { ports }: Readonly<Record<string, unknown>>,
): Service["ports"] {
  const isNamed = typeof ports === "object" && ports !== null;
  const names = isNamed ? Object.keys(ports) : [""];
  return names.map((name) => ({ name, port: 0, protocol: "tcp" }));
}

function refusing<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof FieldError)) throw error;
    throw new LayoutError(error.message, { cause: error });
  }
}
