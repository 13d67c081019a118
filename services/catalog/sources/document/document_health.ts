/**
 * How the endpoints of a service in a catalog document are asked whether they
 * live.
 *
 * @module
 */

import type {
  HealthCheck,
  HealthTls,
  ServicePort,
  StatusRange,
} from "../../model/model.ts";
import { withoutAbsent } from "../../model/plain_data.ts";
import {
  type DocumentMap,
  type DocumentPath,
  FieldError,
  kindOfValue,
} from "../../../../platform/documents/document_map.ts";

/** Of a health check that does not say. */
const INTERVAL_MS = 10_000;
const TIMEOUT_MS = 2_000;

/** Answers in a row; more would be no check. */
const IN_A_ROW_MAX = 100;

/** @throws {FieldError} */
export function readHealth(
  policy: DocumentMap,
  ports: readonly ServicePort[],
): HealthCheck | undefined {
  const health = policy.map("health", [
    "tcp",
    "http",
    "grpc",
    "interval",
    "timeout",
    "rise",
    "fall",
  ]);
  if (health === undefined) return undefined;
  const kinds = (["tcp", "http", "grpc"] as const)
    .filter((kind) => health.has(kind));
  if (kinds.length !== 1) {
    policy.refuse(
      "health",
      "wanted one of tcp: {}, http: {path: /…} and grpc: {}",
    );
  }
  const how = health.map(kinds[0]!, FIELDS[kinds[0]!])!;
  const port = how.number("port", 1, 65_535);
  if (port === undefined && ports.every(({ protocol }) => protocol === "udp")) {
    policy.refuse(
      "health",
      "nothing says whether a UDP port lives; wanted a TCP port of its " +
        "endpoints to ask: tcp: {port: …}, http: {port: …} or grpc: {port: …}",
    );
  }
  const common = {
    intervalMs: health.duration("interval") ?? INTERVAL_MS,
    timeoutMs: health.duration("timeout") ?? TIMEOUT_MS,
    ...withoutAbsent({
      port,
      rise: health.number("rise", 1, IN_A_ROW_MAX),
      fall: health.number("fall", 1, IN_A_ROW_MAX),
    }),
  };
  switch (kinds[0]!) {
    case "tcp":
      return { kind: "tcp", ...common };
    case "http":
      return {
        kind: "http",
        path: how.text("path") ?? "/",
        ...withoutAbsent({
          host: how.text("host"),
          statuses: readStatuses(how),
          tls: readTls(how),
        }),
        ...common,
      };
    case "grpc":
      return {
        kind: "grpc",
        service: how.text("service") ?? "",
        ...withoutAbsent({ host: how.text("host"), tls: readTls(how) }),
        ...common,
      };
  }
}

const FIELDS = {
  tcp: ["port"],
  http: ["path", "port", "host", "status", "tls"],
  grpc: ["service", "port", "host", "tls"],
} as const;

function readTls(how: DocumentMap): HealthTls | undefined {
  const tls = how.map("tls", ["verify", "serverName"]);
  return tls && withoutAbsent({
    verify: tls.flag("verify"),
    serverName: tls.text("serverName"),
  });
}

/** `[200, "300-399"]`. */
function readStatuses(how: DocumentMap): readonly StatusRange[] | undefined {
  const list = how.list("status");
  if (list.length > 0) {
    return list.map(([item, place]) => readStatus(item, place));
  }
  if (how.has("status")) how.refuse("status", "wanted one status at least");
  return undefined;
}

function readStatus(value: unknown, place: DocumentPath): StatusRange {
  const match = /^([1-5]\d\d)(?:-([1-5]\d\d))?$/.exec(String(value));
  const [first, last] = [Number(match?.[1]), Number(match?.[2] ?? match?.[1])];
  if (first <= last) return { first, last };
  const seen = typeof value === "string" || typeof value === "number"
    ? `"${String(value).slice(0, 20)}"`
    : kindOfValue(value);
  throw new FieldError(
    place,
    `saw ${seen}, wanted a status such as 200, or a range such as 200-299`,
  );
}
