/**
 * Checks the routes of a port, because no later step does: names, paths and
 * headers of HTTP, and how many there are.
 *
 * @module
 */

import { quoted } from "../../../proto/peer/quoted.ts";
import {
  appProtocolOf,
  type HeaderMatch,
  HEADERS_PER_ROUTE_MAX,
  type Route,
  ROUTE_TEXT_LENGTH_MAX,
  ROUTE_WEIGHT_MAX,
  ROUTES_PER_PORT_MAX,
  type RouteTarget,
  type ServicePort,
  TARGETS_PER_ROUTE_MAX,
} from "./model.ts";

/** Without what would begin a query or a fragment. */
const PREFIX = /^\/[!"$->@-~]*$/;

/** RFC 9110 §5.6.2, in lower case as in HTTP/2. */
const HEADER_NAME = /^[-!#$%&'*+.^_`|~0-9a-z]{1,255}$/;

/** RFC 9110 §5.5, without bytes that cannot be typed. */
const HEADER_VALUE = /^(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?$/;

const HOST =
  /^(?:\*\.)?[a-z0-9_][-a-z0-9_]{0,62}(?:\.[a-z0-9_][-a-z0-9_]{0,62})*$/;
const HOST_LENGTH_MAX = 253;

const SERVICE = /^[^/]+\/[^/]+$/;

/** @returns What is wrong with a port's routes; `undefined`: nothing. */
export function checkRoutes(port: ServicePort): string | undefined {
  const { routes } = port;
  if (routes === undefined) return undefined;
  if (appProtocolOf(port) === undefined) {
    return "routes are for TCP ports with appProtocol http, h2c or grpc";
  }
  if (routes.length > ROUTES_PER_PORT_MAX) {
    return `it has ${routes.length} routes, ${ROUTES_PER_PORT_MAX} are allowed`;
  }
  for (const [index, route] of routes.entries()) {
    const problem = checkRoute(route);
    if (problem !== undefined) return `route ${index + 1}: ${problem}`;
  }
  return undefined;
}

function checkRoute({ host, prefix, headers = [], to }: Route) {
  if (host !== undefined && !isHost(host)) {
    return `${
      quoted(host)
    } is no host: a name in lower case is wanted, or *. ` +
      "and one";
  }
  if (!PREFIX.test(prefix) || prefix.length > ROUTE_TEXT_LENGTH_MAX) {
    return `${quoted(prefix)} is no prefix of paths: / and printable ASCII ` +
      `without ? and # is wanted, ${ROUTE_TEXT_LENGTH_MAX} at most`;
  }
  return checkHeaders(headers) ?? checkTargets(to);
}

function checkHeaders(headers: readonly HeaderMatch[]): string | undefined {
  if (headers.length > HEADERS_PER_ROUTE_MAX) {
    return `it has ${headers.length} headers, ${HEADERS_PER_ROUTE_MAX} are ` +
      "allowed";
  }
  const names = new Set<string>();
  for (const { name, value } of headers) {
    if (!HEADER_NAME.test(name)) {
      return `${quoted(name)} is no name of a header in lower case`;
    }
    if (names.has(name)) return `the header ${name} is there twice`;
    if (!HEADER_VALUE.test(value) || value.length > ROUTE_TEXT_LENGTH_MAX) {
      return `the header ${name} has a value that none can have`;
    }
    names.add(name);
  }
  return undefined;
}

function checkTargets(to: readonly RouteTarget[]): string | undefined {
  if (to.length === 0 || to.length > TARGETS_PER_ROUTE_MAX) {
    return `it goes to ${to.length} places, 1 to ${TARGETS_PER_ROUTE_MAX} are ` +
      "wanted";
  }
  const places = new Set<string>();
  for (const { service, port, weight } of to) {
    if (!SERVICE.test(service)) {
      return `${quoted(service)} is no NAMESPACE/NAME of a service`;
    }
    if (!isWithin(port, 65_535)) {
      return `it goes to port ${port}, 1 to 65535 is wanted`;
    }
    if (!isWithin(weight, ROUTE_WEIGHT_MAX)) {
      return `it has the weight ${weight}, 1 to ${ROUTE_WEIGHT_MAX} is wanted`;
    }
    const place = `${service}:${port}`;
    if (places.has(place)) return `it goes to ${place} twice`;
    places.add(place);
  }
  return undefined;
}

function isHost(host: string): boolean {
  return HOST.test(host) && host.length <= HOST_LENGTH_MAX;
}

function isWithin(number: number, most: number): boolean {
  return Number.isInteger(number) && number >= 1 && number <= most;
}
