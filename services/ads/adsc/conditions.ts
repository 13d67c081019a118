/**
 * The conditions that a client of discovery waits for: numbers of resources,
 * and the content of some.
 *
 * @module
 */

import type { Code } from "../../../proto/codes/codes.ts";
import { hostPort } from "../../../proto/peer/host_port.ts";
import {
  type ClusterLoadAssignment,
  HealthStatus,
} from "../../../proto/xds/xds_messages.ts";
import {
  RESOURCE_KINDS,
  type ResourceKind,
} from "../../../proto/xds/resource.ts";
import type { Condition, SeenBy } from "./subscriber.ts";

/** A text that is no condition; one line that goes on after "saw this, ". */
export class ConditionError extends Error {
  override readonly name = "ConditionError";
  readonly tunnelCode: Code = "TUN101";
}

/** What can be counted. */
const COUNTS: Readonly<Record<string, (client: SeenBy) => number>> = {
  clusters: (client) => client.held("cluster").size,
  assignments: (client) => client.held("endpoints").size,
  listeners: (client) => client.held("listener").size,
  routes: (client) => client.held("route").size,
  services: (client) => client.held("service").size,
  endpoints: (client) =>
    [...client.held("endpoints").values()].reduce(
      (sum, { content }) =>
        sum + (content.kind === "endpoints"
          ? usableAddresses(content.message).length
          : 0),
      0,
    ),
  absent: (client) =>
    RESOURCE_KINDS.reduce((sum, kind) => sum + client.absent(kind).size, 0),
  responses: (client) => sumOf(client, ({ responses }) => responses),
  refused: (client) => sumOf(client, ({ refused }) => refused),
};

type Comparison = (seen: number, wanted: number) => boolean;

const COMPARISONS: ReadonlyMap<string, Comparison> = new Map<
  string,
  Comparison
>(Object.entries({
  ">=": (seen, wanted) => seen >= wanted,
  "<=": (seen, wanted) => seen <= wanted,
  "!=": (seen, wanted) => seen !== wanted,
  "==": (seen, wanted) => seen === wanted,
  "=": (seen, wanted) => seen === wanted,
  ">": (seen, wanted) => seen > wanted,
  "<": (seen, wanted) => seen < wanted,
}));

/**
 * `clusters>=3`: a number of things.
 *
 * @throws {ConditionError}
 */
export function parseCount(text: string): Condition {
  const match = /^\s*([a-z]+)\s*(>=|<=|!=|==|=|>|<)\s*(\d{1,9})\s*$/.exec(text);
  const [, name = "", sign = "", digits = ""] = match ?? [];
  const count = Object.hasOwn(COUNTS, name) ? COUNTS[name] : undefined;
  if (count === undefined) {
    throw new ConditionError(
      `wanted a number of ${Object.keys(COUNTS).join(", ")}, such as ` +
        "clusters>=3 or refused==0",
    );
  }
  const holds = COMPARISONS.get(sign)!;
  const wanted = Number(digits);
  return {
    text,
    check(client) {
      const seen = count(client);
      return holds(seen, wanted) ? undefined : `${seen} ${name}`;
    },
  };
}

/**
 * Conditions on what a client holds: `[endpoints] NAME=ADDRESS:PORT,…`, `KIND
 * NAME`, `no KIND NAME`.
 *
 * @throws {ConditionError}
 */
export function parseExpectation(text: string): Condition {
  const words = text.trim().split(/\s+/);
  const isDenied = words[0] === "no";
  // Only endpoints are compared, so the word may be missing.
  const isBare = words.length === 1 && text.includes("=");
  const [kindWord = "", name = "", ...rest] = isDenied
    ? words.slice(1)
    : isBare
    ? ["endpoints", ...words]
    : words;
  const kind = RESOURCE_KINDS.find((each) => each === kindWord);
  if (kind === undefined || name === "" || rest.length > 0) {
    throw new ConditionError(
      "wanted NAME=ADDRESS:PORT,… or KIND NAME or no KIND NAME; " +
        `kinds are ${RESOURCE_KINDS.join(", ")}`,
    );
  }
  const at = name.indexOf("=");
  if (at < 0) {
    return isDenied ? denied(text, kind, name) : there(text, kind, name);
  }
  if (kind !== "endpoints" || isDenied) {
    throw new ConditionError("only endpoints are compared, with NAME=…");
  }
  const wanted = name.slice(at + 1).split(",").filter((each) => each !== "");
  return assigned(text, name.slice(0, at), wanted);
}

function there(text: string, kind: ResourceKind, name: string): Condition {
  return {
    text,
    check(client) {
      if (client.held(kind).has(name)) return undefined;
      return client.absent(kind).has(name)
        ? `the server has no such ${kind}`
        : `no ${kind} ${name}`;
    },
  };
}

function denied(text: string, kind: ResourceKind, name: string): Condition {
  return {
    text,
    check: (client) =>
      client.held(kind).has(name) ? `a ${kind} ${name}` : undefined,
  };
}

function assigned(
  text: string,
  name: string,
  wanted: readonly string[],
): Condition {
  const asText = (addresses: readonly string[]) =>
    [...addresses].sort().join(",");
  const sorted = asText(wanted);
  return {
    text,
    check(client) {
      const content = client.held("endpoints").get(name)?.content;
      if (content?.kind !== "endpoints") {
        return client.absent("endpoints").has(name)
          ? "the server has no such endpoints"
          : `no endpoints ${name}`;
      }
      const seen = asText(usableAddresses(content.message));
      return seen === sorted ? undefined : `${name}=${seen}`;
    },
  };
}

/** `host:port` of endpoints that are to get connections, by EDS's own words. */
function usableAddresses(
  { endpoints: localities = [] }: ClusterLoadAssignment,
): string[] {
  return localities.flatMap(({ lbEndpoints = [] }) =>
    lbEndpoints.flatMap(({ endpoint, healthStatus = HealthStatus.UNKNOWN }) => {
      const isUsable = healthStatus === HealthStatus.UNKNOWN ||
        healthStatus === HealthStatus.HEALTHY;
      const { address = "", portValue = 0 } =
        endpoint?.address?.socketAddress ?? {};
      return isUsable ? [hostPort(address, portValue)] : [];
    })
  );
}

function sumOf(
  client: SeenBy,
  of: (
    status: NonNullable<SeenBy["status"][ResourceKind]>,
  ) => number,
): number {
  return Object.values(client.status)
    .reduce((sum, status) => sum + of(status), 0);
}
