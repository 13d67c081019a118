/**
 * One endpoint of a catalog document, and by what agent it is reached.
 *
 * @module
 */

import { parseIpPrefix } from "../../../../proto/peer/ip_address.ts";
import {
  AGENT_KEYS,
  DEFAULT_WEIGHT,
  DIRECT,
  type Endpoint,
  type EndpointPort,
  type ServicePort,
  type Via,
  WEIGHT_MAX,
} from "../../model/model.ts";
import { canonicalAddress } from "../../model/validate.ts";
import {
  DocumentMap,
  type DocumentPath,
  kindOfValue,
} from "../../../../platform/documents/document_map.ts";

const ENDPOINT_FIELDS = [
  ...["address", "port", "ports", "state"],
  ...["node", "zone", "weight", "via"],
] as const;

const STATES = ["ready", "serving", "terminating", "unready"] as const;

/**
 * Reads one endpoint.
 *
 * @param of The ports of its service.
 * @throws {FieldError}
 */
export function readEndpoint(
  value: unknown,
  place: DocumentPath,
  of: readonly ServicePort[],
): Endpoint {
  const fields = new DocumentMap(value, place, ENDPOINT_FIELDS);
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
  fields: DocumentMap,
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
function readVia(fields: DocumentMap): Via {
  const value = fields.value("via");
  if (value === undefined || value === "direct") return DIRECT;
  if (value === "agent") return { kind: "agent" };
  if (typeof value === "string" || typeof value !== "object") {
    const seen = typeof value === "string" ? `"${value}"` : kindOfValue(value);
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
