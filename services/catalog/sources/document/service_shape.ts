/**
 * One service of a catalog document, with its ports, their routes, and the
 * endpoints behind it.
 *
 * @module
 */

import {
  as,
  duration,
  either,
  list,
  map,
  type MeaningOf,
  names,
  number,
  type Reading,
  scalar,
  type Shape,
  TEXT,
  word,
} from "../../../../platform/documents/shape.ts";
import {
  parseIpAddress,
  parseIpPrefix,
} from "../../../../proto/peer/ip_address.ts";
import {
  type Affinity,
  AGENT_KEYS,
  DEFAULT_AFFINITY_TTL_MS,
  DEFAULT_NAMESPACE,
  DEFAULT_WEIGHT,
  DIRECT,
  type Endpoint,
  type EndpointPort,
  keyOf,
  NO_AFFINITY,
  NO_POLICY,
  type Route,
  ROUTE_WEIGHT_MAX,
  type Service,
  type ServiceListen,
  type ServicePort,
  type Via,
  WEIGHT_MAX,
} from "../../model/model.ts";
import { given } from "../../../../platform/documents/given.ts";
import {
  canonicalAddress,
  CATALOG_ENDPOINTS_MAX,
  checkEndpoints,
  checkService,
  isPort,
} from "../../model/validate.ts";
import { PORT, sayUnanswered, SERVICE_POLICY } from "./policy_shape.ts";
import type { DocumentPath } from "../../../../platform/documents/field_error.ts";

/** A service and its endpoints. */
export interface ReadService {
  readonly service: Service;
  /** Absent: it does not state endpoints, so another source's count. */
  readonly behind?: readonly Endpoint[];
}

const ROUTE = map({
  host: TEXT,
  prefix: TEXT,
  headers: names(TEXT),
  to: list(map({
    service: TEXT,
    port: PORT,
    weight: number(1, ROUTE_WEIGHT_MAX),
  }, {
    required: {
      service: "wanted NAME or NAMESPACE/NAME",
      port: "wanted a number",
    },
  })),
}, { required: { to: "wanted a list of {service: NAME, port: PORT}" } });

const LISTEN = "^(?:\\[([^\\]]+)\\]:|([^:]+):)?(\\d{1,5})$";

/** `8080`, `127.0.0.1:8080`, `[::1]:8080`. */
const LISTEN_PLACE: Shape<ServiceListen> = scalar(
  { anyOf: [{ type: "string", pattern: LISTEN }, PORT.schema] },
  ["string", "number"],
  (value, at) => {
    const match = new RegExp(LISTEN).exec(String(value));
    const host = match?.[1] ?? match?.[2];
    const port = Number(match?.[3]);
    const isGood = isPort(port) &&
      (host === undefined || parseIpAddress(host) !== undefined);
    if (!isGood) {
      return at.say("wanted a port, or ADDRESS:PORT with an IP address");
    }
    return host === undefined ? { port } : { host, port };
  },
);

const SERVICE_PORT = map({
  name: TEXT,
  port: PORT,
  protocol: word(["tcp", "udp"]),
  appProtocol: TEXT,
  routes: list(ROUTE),
  listen: LISTEN_PLACE,
}, { required: { port: "wanted a number" } });

const AFFINITY: Shape<Affinity> = as(
  map({ clientIP: map({ ttl: duration() }) }),
  ({ clientIP }): Affinity =>
    clientIP === undefined
      ? NO_AFFINITY
      : { kind: "client-ip", ttlMs: clientIP.ttl ?? DEFAULT_AFFINITY_TTL_MS },
);

/** `direct`, `agent`, or which agent: `{host: node1}`. */
const VIA: Shape<Via> = either([
  as(
    word(["direct", "agent"]),
    (kind): Via => kind === "direct" ? DIRECT : { kind },
  ),
  as(
    map({ uid: TEXT, host: TEXT, cidr: TEXT, id: TEXT }, { oneOf: AGENT_KEYS }),
    (agents, at): Via | undefined => {
      const key = AGENT_KEYS.find((key) => agents[key] !== undefined)!;
      const value = agents[key]!;
      const isNone = value === "" ||
        (key === "cidr" && parseIpPrefix(value) === undefined);
      return isNone
        ? at.say(`"${value}" names no agent`, key)
        : { kind: "agent", agent: { key, value } };
    },
  ),
]);

/**
 * As it was written; the meaning of its ports depends on the ports of its
 * service.
 */
export const ENDPOINT = map({
  address: as(
    TEXT,
    (given, at) =>
      canonicalAddress(given) ?? at.say(
        `"${given}" is neither an IP address nor a host name; ports go to port`,
      ),
  ),
  port: PORT,
  ports: names(PORT),
  state: word(["ready", "serving", "terminating", "unready"]),
  node: TEXT,
  zone: TEXT,
  weight: number(1, WEIGHT_MAX),
  via: VIA,
}, { required: { address: "wanted an IP address or a host name" } });

export const SERVICE: Shape<ReadService> = as(
  map({
    name: TEXT,
    namespace: TEXT,
    ports: list(SERVICE_PORT, { least: 1 }),
    affinity: AFFINITY,
    policy: SERVICE_POLICY,
    // YAML's aliases can put one list in many places.
    endpoints: list(ENDPOINT, { inAll: [CATALOG_ENDPOINTS_MAX, "endpoints"] }),
  }, { required: { name: "wanted a name", ports: "wanted one at least" } }),
  (given, at) => {
    const { name, namespace = DEFAULT_NAMESPACE, endpoints } = given;
    const ports = given.ports.map((port) => portOf(port, namespace));
    const { affinity = NO_AFFINITY, policy = NO_POLICY } = given;
    const service: Service = { namespace, name, ports, affinity, policy };
    sayUnanswered(policy, ports, at, "policy");
    const behind = endpoints?.flatMap((endpoint, index) =>
      endpointOf(endpoint, ports, at, "endpoints", index) ?? []
    );
    const problem = checkService(service) ??
      checkEndpoints({ service: keyOf(service), endpoints: behind ?? [] });
    if (problem !== undefined) return at.say(problem);
    return behind === undefined ? { service } : { service, behind };
  },
);

function portOf(
  { name = "", port, protocol = "tcp", appProtocol, routes, listen }: MeaningOf<
    typeof SERVICE_PORT
  >,
  namespace: string,
): ServicePort {
  return {
    name,
    port,
    protocol,
    ...given({
      appProtocol,
      routes: routes?.map((route) => routeOf(route, namespace)),
      listen,
    }),
  };
}

/** @param namespace Of the service: that of targets that do not say. */
function routeOf(
  { host, prefix = "/", headers, to }: MeaningOf<typeof ROUTE>,
  namespace: string,
): Route {
  return {
    ...given({
      host: host?.toLowerCase(),
      headers: headers === undefined || headers.size === 0
        ? undefined
        : [...headers].map(([name, value]) => ({
          name: name.toLowerCase(),
          value,
        })),
    }),
    prefix,
    to: to.map(({ service, port, weight = DEFAULT_WEIGHT }) => ({
      service: service.includes("/") ? service : `${namespace}/${service}`,
      port,
      weight,
    })),
  };
}

/**
 * What an endpoint is behind the ports of its service.
 *
 * @param inside Where it stands, from `at`.
 */
export function endpointOf(
  { state = "ready", node, zone, weight = DEFAULT_WEIGHT, ...given }: MeaningOf<
    typeof ENDPOINT
  >,
  of: readonly ServicePort[],
  at: Reading,
  ...inside: DocumentPath
): Endpoint | undefined {
  const ports = portsOf(given, of, at, ...inside);
  // Not `given`: of these there are tens of thousands.
  return ports && {
    address: given.address,
    ports,
    state,
    ...(node === undefined ? {} : { node }),
    ...(zone === undefined ? {} : { zone }),
    weight,
    via: given.via ?? DIRECT,
  };
}

/** Without a word about ports they are the service's own. */
function portsOf(
  { port, ports }: Pick<MeaningOf<typeof ENDPOINT>, "port" | "ports">,
  of: readonly ServicePort[],
  at: Reading,
  ...inside: DocumentPath
): readonly EndpointPort[] | undefined {
  if (port !== undefined) {
    if (ports !== undefined) {
      return at.say("there is ports as well", ...inside, "port");
    }
    const [only, ...others] = of;
    return only !== undefined && others.length === 0
      ? [{ name: only.name, port }]
      : at.say(
        "the service has several; wanted ports: {NAME: PORT}",
        ...inside,
        "port",
      );
  }
  if (ports === undefined) return of.map(({ name, port }) => ({ name, port }));
  const known = of.map(({ name }) => name);
  const unknown = ports.keys().find((name) => !known.includes(name));
  if (unknown !== undefined) {
    const wanted = known.includes("")
      ? "the service's port has no name; wanted port: PORT instead of ports"
      : `there is no such field; wanted one of ${known.join(", ")}`;
    return at.say(wanted, ...inside, "ports", unknown);
  }
  return known.flatMap((name) => {
    const port = ports.get(name);
    return port === undefined ? [] : [{ name, port }];
  });
}
