/**
 * Requests of a port that go to other services, by what is in them.
 *
 * Only discovery makes something of them, and only for ports whose `appProtocol`
 * says that there are requests: a proxy that carries bytes sees none. What may
 * be written down is in `route_rules.ts`.
 *
 * @module
 */

/**
 * One rule. Rules are asked in their order, and the first one that matches
 * decides; what none matches goes to the service's own endpoints.
 */
export interface Route {
  /** A host name, or `*.` and one: all names that end so. Absent: any. */
  readonly host?: string;
  /** What the path begins with, letter for letter; `/` is all of them. */
  readonly prefix: string;
  /** All of them have to be there with just that value. */
  readonly headers?: readonly HeaderMatch[];
  /** One at least. Requests are shared out by weight. */
  readonly to: readonly RouteTarget[];
}

export interface HeaderMatch {
  /** In lower case. */
  readonly name: string;
  readonly value: string;
}

/** A TCP port of a service, maybe of this one. */
export interface RouteTarget {
  /** `namespace/name`. It need not be there (yet). */
  readonly service: string;
  readonly port: number;
  /** 1 to {@linkcode ROUTE_WEIGHT_MAX}. */
  readonly weight: number;
}

/** More are a table for a gateway. Each is asked for each request. */
export const ROUTES_PER_PORT_MAX = 128;
export const HEADERS_PER_ROUTE_MAX = 16;
export const TARGETS_PER_ROUTE_MAX = 16;

/** Of prefixes and of header values. */
export const ROUTE_TEXT_LENGTH_MAX = 1_024;

export const ROUTE_WEIGHT_MAX = 1_000_000;
