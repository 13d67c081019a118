/**
 * Why a dial failed, in the words that Go's `net` package uses.
 *
 * They are sent to the caller; people, dashboards and Konnectivity's own
 * servers look for them (`i/o timeout` becomes 504, `too many open files` 503).
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import { clipped } from "../../proto/peer/quoted.ts";
import { LookupError } from "../names/resolver.ts";
import { codeOf, messageOf } from "../../platform/errors/error_code.ts";

/** The words of `connect(2)` and `socket(2)` by error code (Go's syscall table). */
const WORDS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ECONNREFUSED: "connect: connection refused",
    ECONNRESET: "connect: connection reset by peer",
    ETIMEDOUT: "connect: connection timed out",
    EHOSTUNREACH: "connect: no route to host",
    ENETUNREACH: "connect: network is unreachable",
    EADDRNOTAVAIL: "connect: cannot assign requested address",
    EACCES: "connect: permission denied",
    EPERM: "connect: operation not permitted",
    EINVAL: "connect: invalid argument",
    ENOENT: "connect: no such file or directory",
    EMFILE: "socket: too many open files",
    ENFILE: "socket: too many open files in system",
  }),
);

const CONNECT_CODES: ReadonlyMap<string, Code> = new Map<string, Code>([
  ["ECONNREFUSED", "TUN503"],
  ["ENOENT", "TUN503"],
  ["ETIMEDOUT", "TUN502"],
  ["EMFILE", "TUN513"],
  ["ENFILE", "TUN513"],
]);

/** The error of a failed attempt to reach `address` (`ip:port` or a path). */
export function connectError(
  protocol: string,
  address: string,
  error: unknown,
): DialError {
  if (error instanceof DialError) return error;
  if (error instanceof LookupError) {
    const reason = error.fault === "timeout" ? "timeout" : "endpoint";
    const coded = error.fault === "timeout" ? "TUN502" : "TUN505";
    return new DialError(
      reason,
      `dial ${protocol}: ${error.message}`,
      { code: coded },
    );
  }
  const code = codeOf(error);
  const words = WORDS.get(code) ??
    `connect: ${messageOf(error)}`;
  return new DialError(
    code === "ETIMEDOUT" ? "timeout" : "endpoint",
    `dial ${protocol} ${address}: ${words}`,
    { code: CONNECT_CODES.get(code) ?? "TUN506" },
  );
}

/** The error of a dial whose deadline passed. */
export function dialTimeout(protocol: string, address: string): DialError {
  return new DialError("timeout", `dial ${protocol} ${address}: i/o timeout`);
}

/** The error of a lookup whose deadline passed. */
export function lookupTimeout(protocol: string, host: string): DialError {
  return new DialError(
    "timeout",
    `dial ${protocol}: lookup ${host}: i/o timeout`,
  );
}

/** The error of a dial that its caller gave up. */
export function dialCancelled(protocol: string, address: string): DialError {
  return new DialError(
    "cancelled",
    `dial ${protocol} ${address}: operation was canceled`,
  );
}

/** The error of an unknown protocol. */
export function unknownNetwork(protocol: string): DialError {
  const network = clipped(protocol, NETWORK_LENGTH_MAX);
  return new DialError(
    "endpoint",
    `dial ${network}: unknown network ${network}`,
    { code: "TUN101" },
  );
}

/** A caller chooses it; the longest that Go knows has ten letters. */
const NETWORK_LENGTH_MAX = 50;
