/**
 * The content of a CONNECT request: its target (RFC 9110 §9.3.6), and our own
 * fields.
 *
 * It knows neither sockets nor agents nor the use of the target.
 *
 * @module
 */

import {
  type DialWishes,
  NODE_FIELD,
  readWishes,
  TWO_NODES,
} from "../../proto/link/dial_wishes.ts";
import {
  CONNECTION_ID_FIELD,
  type ConnectionId,
  readConnectionId,
} from "../../proto/peer/connection_id.ts";
import {
  readTraceparent,
  type TraceContext,
  TRACEPARENT_FIELD,
} from "../../proto/peer/trace_context.ts";
import type { RequestHead } from "./head.ts";
import { MessageError, quote } from "./refusal.ts";

/** For callers that send another request. */
export const CONNECT_EXAMPLE = "CONNECT host:port";

/** A request that can be served. */
export interface ConnectRequest extends DialWishes {
  /** `host:port`, IPv6 in brackets, exactly one port in 1–65535. */
  readonly target: string;
  readonly node: string | undefined;
  /** The client's, or the span that it sent; anything else is no id. */
  readonly id: ConnectionId | undefined;
  readonly trace: TraceContext | undefined;
}

/** @throws {MessageError} With the status to answer. */
export function connectRequestOf(
  { method, target, fields }: RequestHead,
): ConnectRequest {
  if (method !== "CONNECT") {
    throw new MessageError(
      405,
      `this proxy only supports CONNECT passthrough, not ${quote(method)}`,
    );
  }
  if (fields.all(NODE_FIELD).length > 1) throw new MessageError(400, TWO_NODES);
  const problem = targetProblem(target);
  if (problem !== undefined) {
    throw new MessageError(
      400,
      `Cannot connect to ${quote(target)}: ${problem}`,
    );
  }
  const wishes = readWishes((field) => fields.all(field)[0]);
  const trace = readTraceparent(fields.all(TRACEPARENT_FIELD));
  const ids = fields.all(CONNECTION_ID_FIELD);
  const id = readConnectionId(ids.length === 1 ? ids[0] : trace?.spanId);
  return { ...wishes, target, id, trace };
}

/** Why `target` is not a `host:port`, or `undefined` when it is. */
function targetProblem(target: string): string | undefined {
  return PLAIN_TARGET.test(target) ? undefined : problemOf(target);
}

/** Nearly all targets, which need no further checks. Ports up to 59999. */
const PLAIN_TARGET = /^[0-9A-Za-z._-]+:[1-9](?:[0-9]{0,3}|(?<=[1-5])[0-9]{4})$/;

function problemOf(target: string): string | undefined {
  if (target.includes("@")) return "user information is not allowed here";
  if (/[/?#\\]/.test(target)) return 'a path was seen, wanted "host:port"';
  const bracketed = /^\[([0-9a-fA-F:.]+(?:%[0-9A-Za-z._~-]+)?)\](.*)$/.exec(
    target,
  );
  const rest = bracketed ? bracketed[2]! : target;
  if (bracketed === null && target.startsWith("[")) {
    return "what stands in brackets is not an IPv6 address";
  }
  if (bracketed !== null && !bracketed[1]!.includes(":")) {
    return "what stands in brackets is not an IPv6 address";
  }
  if (bracketed === null && target.indexOf(":") !== target.lastIndexOf(":")) {
    return 'an IPv6 address needs brackets, as in "[2001:db8::1]:443"';
  }
  const colon = rest.lastIndexOf(":");
  if (colon === -1) return 'there is no port, wanted "host:port"';
  if (bracketed === null && !/^[0-9A-Za-z._-]+$/.test(rest.slice(0, colon))) {
    return "the host is empty or not a host name";
  }
  const port = rest.slice(colon + 1);
  if (!/^[0-9]{1,5}$/.test(port) || +port < 1 || +port > 65_535) {
    return `the port is ${quote(port)}, wanted 1 to 65535`;
  }
  return undefined;
}
