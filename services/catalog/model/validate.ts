/**
 * Checks a service and its endpoints before any follower sees them.
 *
 * Sources check what they read by their own format's rules, and can say where
 * in it something is wrong. These rules hold for every source: names that can
 * stand in file names, DNS names and labels of metrics, numbers in their
 * ranges, and limits on how much there is.
 *
 * @module
 */

import { clipped } from "../../../proto/peer/quoted.ts";
import {
  isIpv4Lookalike,
  NAME_LENGTH_MAX,
  plainName,
} from "../../../proto/peer/host_port.ts";
import { canonicalIp, parseIpAddress } from "../../../proto/peer/ip_address.ts";
import {
  AGENT_KEYS,
  type Endpoint,
  type HealthCheck,
  keyOf,
  type Service,
  type ServiceEndpoints,
  type ServicePort,
  type StatusRange,
  WEIGHT_MAX,
} from "./model.ts";
import { checkRoutes } from "./route_rules.ts";

/** Of one source; a cluster is meant to have at most half of it. */
export const SERVICES_MAX = 20_000;

/** Of one source, over all services. */
export const CATALOG_ENDPOINTS_MAX = 200_000;

/** Each port may become a listener, with a descriptor of its own. */
export const PORTS_PER_SERVICE_MAX = 256;

/** Kubernetes' own controllers stop at a tenth of it. */
export const ENDPOINTS_PER_SERVICE_MAX = 10_000;

/** As DNS names and as Kubernetes names of everything. */
const NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?$/;
const NAMESPACE = /^[A-Za-z0-9](?:[-A-Za-z0-9_]{0,61}[A-Za-z0-9])?$/;
/** The empty one can be, too. */
const PORT_NAME = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;

const HOST_NAME = /^[a-z0-9_][-a-z0-9_]{0,62}(?:\.[a-z0-9_][-a-z0-9_]{0,62})*$/;

/** Longest name of a node, a zone, an agent. */
const LABEL_LENGTH_MAX = 253;

/** @returns What is wrong with it; `undefined`: nothing. */
export function checkService(service: Service): string | undefined {
  const { namespace, name, ports } = service;
  if (!NAMESPACE.test(namespace)) {
    return isNo(namespace, "namespace: letters, digits, - and _, 63 at most");
  }
  if (!NAME.test(name)) {
    return isNo(
      name,
      "name of a service: letters, digits, -, _ and dots, 253 at most",
    );
  }
  const problem = checkPorts(ports) ?? checkTimes(service);
  return problem === undefined ? undefined : `${keyOf(service)}: ${problem}`;
}

/**
 * @param known Those that were looked at before.
 * @returns What is wrong with one of them; `undefined`: nothing.
 */
export function checkEndpoints(
  { service, endpoints }: ServiceEndpoints,
  known?: ReadonlySet<Endpoint>,
): string | undefined {
  const [namespace = "", name = "", ...rest] = service.split("/");
  if (!NAMESPACE.test(namespace) || !NAME.test(name) || rest.length > 0) {
    return isNo(service, "NAMESPACE/NAME of a service");
  }
  if (endpoints.length > ENDPOINTS_PER_SERVICE_MAX) {
    return `${service}: it has ${endpoints.length} endpoints, ` +
      `${ENDPOINTS_PER_SERVICE_MAX} are allowed`;
  }
  for (const endpoint of endpoints) {
    if (known?.has(endpoint)) continue;
    const problem = checkEndpoint(endpoint);
    if (problem !== undefined) return `${service}: ${problem}`;
  }
  return undefined;
}

/**
 * The one way of writing an address; `undefined` when the text is no address.
 */
export function canonicalAddress(text: string): string | undefined {
  // Most are, thousands at a time, and those have no other spelling.
  if (IPV4.test(text)) return text;
  if (parseIpAddress(text) !== undefined) return canonicalIp(text);
  const name = plainName(text);
  const isName = HOST_NAME.test(name) && name.length <= NAME_LENGTH_MAX &&
    !isIpv4Lookalike(name);
  return isName ? name : undefined;
}

export function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
}

function checkPorts(ports: readonly ServicePort[]): string | undefined {
  if (ports.length > PORTS_PER_SERVICE_MAX) {
    return `it has ${ports.length} ports, ${PORTS_PER_SERVICE_MAX} are allowed`;
  }
  const names = new Set<string>();
  const numbers = new Set<string>();
  for (const servicePort of ports) {
    const { name, port, protocol, listen } = servicePort;
    if (!PORT_NAME.test(name)) return isNo(name, "name of a port");
    if (!isPort(port)) return notAPort(name, port);
    if (listen !== undefined && !isPort(listen.port)) {
      return notAPort(name, listen.port);
    }
    if (
      listen?.host !== undefined && parseIpAddress(listen.host) === undefined
    ) {
      return `port "${name}" listens on "${clipped(listen.host)}", an IP ` +
        "address is wanted";
    }
    if (names.has(name)) return `two of its ports are named "${name}"`;
    if (numbers.has(`${port}/${protocol}`)) {
      return `two of its ports are ${port}/${protocol}`;
    }
    const problem = checkRoutes(servicePort);
    if (problem !== undefined) return `port "${name}": ${problem}`;
    names.add(name);
    numbers.add(`${port}/${protocol}`);
  }
  return undefined;
}

function checkTimes({ affinity, policy }: Service): string | undefined {
  const { dialTimeoutMs, udpIdleMs, drainMs, health } = policy;
  const { idleTimeoutMs, halfClosedTimeoutMs, userTimeoutMs } = policy;
  const times = {
    affinity: affinity.kind === "client-ip" ? affinity.ttlMs : undefined,
    dialTimeout: dialTimeoutMs,
    udpIdle: udpIdleMs,
    endpointDrain: policy.endpointDrainMs,
    "ejection time": policy.ejection?.timeMs,
    "health interval": health?.intervalMs,
    "health timeout": health?.timeoutMs,
  };
  for (const [name, ms] of Object.entries(times)) {
    if (ms !== undefined && !(ms > 0 && ms < Infinity)) {
      return `its ${name} is ${ms} ms, more than 0 is wanted`;
    }
  }
  const limits = {
    drain: drainMs,
    idleTimeout: idleTimeoutMs,
    halfClosedTimeout: halfClosedTimeoutMs,
    userTimeout: userTimeoutMs,
  };
  for (const [name, ms] of Object.entries(limits)) {
    // What the kernel takes has 31 bits.
    if (ms !== undefined && !(ms >= 0 && ms < 2 ** 31)) {
      return `its ${name} is ${ms} ms, 0 or more is wanted`;
    }
  }
  const failures = policy.ejection?.failures;
  if (failures !== undefined && !isCount(failures, 0)) {
    return `its ejection takes ${failures} failures, 0 or more are wanted`;
  }
  return health === undefined ? undefined : checkHealth(health);
}

function checkHealth(health: HealthCheck): string | undefined {
  const { kind, port, rise = 1, fall = 1 } = health;
  if (port !== undefined && !isPort(port)) {
    return `its health is asked at port ${port}, 1 to 65535 is wanted`;
  }
  if (!isCount(rise, 1) || !isCount(fall, 1)) {
    return `its health changes after ${rise} or ${fall} answers, 1 or more ` +
      "are wanted";
  }
  return kind === "tcp" ? undefined : checkQuestion(health);
}

/** Text for a request must have no space and no line end. */
function checkQuestion(
  health: Exclude<HealthCheck, { kind: "tcp" }>,
): string | undefined {
  const { host, tls } = health;
  if (health.kind === "http" && !/^\/[\x21-\x7e]*$/.test(health.path)) {
    return isNo(health.path, "path to ask for its health");
  }
  if (host !== undefined && !/^[\x21-\x7e]{1,255}$/.test(host)) {
    return isNo(host, "host to ask for its health");
  }
  const serverName = tls?.serverName;
  if (serverName !== undefined && canonicalAddress(serverName) === undefined) {
    return isNo(serverName, "name of a server to ask");
  }
  if (health.kind === "grpc") {
    return health.service.length <= GRPC_SERVICE_MAX
      ? undefined
      : `"${clipped(health.service)}" is too long for a gRPC service`;
  }
  const { statuses = [ANY_STATUS] } = health;
  const isGood = statuses.length > 0 &&
    statuses.every(({ first, last }) =>
      isCount(first, 100) && isCount(last, first) && last <= 599
    );
  return isGood ? undefined : "its health wants a status that there is not";
}

/** A name of a protobuf package and a service in it. */
const GRPC_SERVICE_MAX = 255;

const ANY_STATUS: StatusRange = { first: 100, last: 599 };

function isCount(value: number, least: number): boolean {
  return Number.isInteger(value) && value >= least;
}

function checkEndpoint(endpoint: Endpoint): string | undefined {
  const { address, ports, weight, node = "", zone = "", via } = endpoint;
  if (canonicalAddress(address) !== address) {
    return isNo(address, "address: an IP address or a host name is wanted");
  }
  if (ports.length > PORTS_PER_SERVICE_MAX) {
    return `${address} has ${ports.length} ports, ` +
      `${PORTS_PER_SERVICE_MAX} are allowed`;
  }
  for (const { name, port } of ports) {
    if (!PORT_NAME.test(name)) return isNo(name, "name of a port");
    if (!isPort(port)) return `${address}: ${notAPort(name, port)}`;
  }
  if (!Number.isInteger(weight) || weight < 1 || weight > WEIGHT_MAX) {
    return `${address} has the weight ${weight}, 1 to ${WEIGHT_MAX} is wanted`;
  }
  const labels = [node, zone, ...endpoint.forZones ?? []];
  if (via.kind === "agent" && via.agent !== undefined) {
    if (!AGENT_KEYS.includes(via.agent.key) || via.agent.value === "") {
      return `${address}: an agent is named by ${AGENT_KEYS.join(", ")}`;
    }
    labels.push(via.agent.value);
  }
  const long = labels.find(({ length }) => length > LABEL_LENGTH_MAX);
  return long === undefined
    ? undefined
    : `${address}: "${clipped(long)}" is longer than ${LABEL_LENGTH_MAX}`;
}

function isNo(text: string, what: string): string {
  return `"${clipped(text)}" is no ${what}`;
}

function notAPort(name: string, port: number): string {
  return `port "${name}" is ${port}, 1 to 65535 is wanted`;
}
