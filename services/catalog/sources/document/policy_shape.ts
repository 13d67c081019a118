/**
 * The settings of a service in a catalog document that differ from the proxy's,
 * and the health checks of its endpoints.
 *
 * @module
 */

import {
  as,
  duration,
  FLAG,
  list,
  map,
  number,
  type Reading,
  scalar,
  type Shape,
  TEXT,
  word,
} from "../../../../platform/documents/shape.ts";
import { kindOfValue } from "../../../../platform/documents/field_error.ts";
import {
  BALANCES,
  ENDPOINT_ENDS,
  type HealthCheck,
  type ServicePolicy,
  type ServicePort,
  type StatusRange,
} from "../../model/model.ts";
import { given } from "../../../../platform/documents/given.ts";

/** The default of a health check. */
const INTERVAL_MS = 10_000;
const TIMEOUT_MS = 2_000;

/** Answers in a row; more would be no check. */
const IN_A_ROW_MAX = 100;

export const PORT = number(1, 65_535);
const STATUS = "a status such as 200, or a range such as 200-299";
const STATUS_RANGE = "^[1-5]\\d\\d(?:-[1-5]\\d\\d)?$";

/** `200`, `"300-399"`. */
const STATUSES: Shape<StatusRange> = scalar(
  {
    anyOf: [
      { type: "string", pattern: STATUS_RANGE },
      { type: "integer", minimum: 100, maximum: 599 },
    ],
  },
  ["string", "number"],
  (value, at) => {
    const text = String(value);
    const [first = NaN, last = first] = new RegExp(STATUS_RANGE).test(text)
      ? text.split("-").map(Number)
      : [];
    if (first <= last) return { first, last };
    const seen = typeof value === "string" || typeof value === "number"
      ? `"${text.slice(0, 20)}"`
      : kindOfValue(value);
    return at.say(`saw ${seen}, wanted ${STATUS}`);
  },
);

const TLS = map({ verify: FLAG, serverName: TEXT });

const HEALTH: Shape<HealthCheck> = as(
  map({
    tcp: map({ port: PORT }),
    http: map({
      path: TEXT,
      port: PORT,
      host: TEXT,
      status: list(STATUSES, { least: 1 }),
      tls: TLS,
    }),
    grpc: map({ service: TEXT, port: PORT, host: TEXT, tls: TLS }),
    interval: duration(),
    timeout: duration(),
    rise: number(1, IN_A_ROW_MAX),
    fall: number(1, IN_A_ROW_MAX),
  }, { oneOf: ["tcp", "http", "grpc"] }),
  ({ tcp, http, grpc, interval, timeout, rise, fall }) => {
    const port = (tcp ?? http ?? grpc)?.port;
    const common = {
      intervalMs: interval ?? INTERVAL_MS,
      timeoutMs: timeout ?? TIMEOUT_MS,
      ...given({ port, rise, fall }),
    };
    if (http !== undefined) {
      const { path = "/", host, status: statuses, tls } = http;
      const more = given({ host, statuses, tls });
      return { kind: "http", path, ...more, ...common };
    }
    if (grpc !== undefined) {
      const { service = "", host, tls } = grpc;
      const more = given({ host, tls });
      return { kind: "grpc", service, ...more, ...common };
    }
    return { kind: "tcp", ...common };
  },
);

/** All fields there are. */
const FIELDS = {
  balance: word(BALANCES),
  zoneAware: FLAG,
  nodeAware: FLAG,
  dialTimeout: duration(),
  udpIdle: duration(),
  drain: duration(0),
  onEndpointRemoved: word(ENDPOINT_ENDS),
  onEndpointDown: word(ENDPOINT_ENDS),
  endpointDrain: duration(),
  idleTimeout: duration(0),
  halfClosedTimeout: duration(0),
  userTimeout: duration(0),
  agentOnFailure: FLAG,
  health: HEALTH,
  ejection: map({ failures: number(0, 1_000), time: duration() }),
};

export const POLICY_FIELDS = Object.keys(FIELDS) as readonly (
  keyof typeof FIELDS
)[];

/** In the catalog, a time says its unit. */
const UNITS: ReadonlyMap<string, string> = new Map(Object.entries({
  dialTimeout: "dialTimeoutMs",
  udpIdle: "udpIdleMs",
  drain: "drainMs",
  endpointDrain: "endpointDrainMs",
  idleTimeout: "idleTimeoutMs",
  halfClosedTimeout: "halfClosedTimeoutMs",
  userTimeout: "userTimeoutMs",
}));

export const SERVICE_POLICY: Shape<ServicePolicy> = as(
  map(FIELDS),
  ({ ejection, ...rest }) =>
    given({
      ...Object.fromEntries(
        Object.entries(rest).map((
          [name, value],
        ) => [UNITS.get(name) ?? name, value]),
      ),
      ejection: ejection && given({
        failures: ejection.failures,
        timeMs: ejection.time,
      }),
    }),
);

/** @param inside Where the policy is, from `at`. */
export function sayUnanswered(
  { health }: ServicePolicy,
  ports: readonly ServicePort[],
  at: Reading,
  ...inside: readonly string[]
): void {
  if (health === undefined || health.port !== undefined) return;
  if (ports.some(({ protocol }) => protocol === "tcp")) return;
  at.say(
    "nothing says whether a UDP port lives; wanted a TCP port of its " +
      "endpoints to ask: tcp: {port: …}, http: {port: …} or grpc: {port: …}",
    ...inside,
    "health",
  );
}
