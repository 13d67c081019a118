/**
 * A request to a kubelet: what its head asks for, and the one that leaves for
 * the kubelet.
 *
 * @module
 */

import type { Fields } from "../../net/http1/fields.ts";
import {
  answerLength,
  type BodyLength,
  bodyLength,
  NO_BODY,
} from "../../net/http1/framing.ts";
import {
  headBytes,
  isInterim,
  type RequestHead,
  type ResponseHead,
} from "../../net/http1/head.ts";
import { MessageError, quote } from "../../net/http1/refusal.ts";

/** Protocols that kubelets change to for exec, attach and port-forward. */
const UPGRADES: ReadonlySet<string> = new Set(["websocket", "spdy/3.1"]);

/** All that a kubelet serves; TRACE and CONNECT would be addressed to us. */
const METHODS: ReadonlySet<string> = new Set([
  ...["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"],
]);

/** A request that can be passed on. */
export interface KubeletRequest {
  readonly method: string;
  /** Path and query, as they came. */
  readonly target: string;
  /** The path alone. */
  readonly path: string;
  /** The Host header. */
  readonly host: string;
  readonly fields: Fields;
  readonly body: BodyLength;
  /** What the connection shall change to; absent: nothing. */
  readonly upgrade?: string | undefined;
}

/** @throws {MessageError} With the status to answer. */
export function kubeletRequestOf(
  { method, target, version, fields }: RequestHead,
): KubeletRequest {
  if (version !== "1.1") {
    throw new MessageError(505, "Cannot serve HTTP/1.0, wanted HTTP/1.1");
  }
  if (!METHODS.has(method)) {
    throw new MessageError(
      501,
      `Cannot pass on ${quote(method)}, wanted one of ` +
        [...METHODS].join(", "),
    );
  }
  const path = pathOf(target);
  const host = fields.one("host");
  if (host === undefined) {
    throw new MessageError(400, "Cannot tell which node is meant: no Host");
  }
  const body = bodyLength(fields, NO_BODY);
  const upgrade = upgradeOf(fields, body);
  return { method, target, path, host, fields, body, upgrade };
}

/**
 * The path of an origin-form target (RFC 9112 §3.2.1). Paths that a kubelet
 * would normalize are refused, because the node is found by the path as it is.
 */
function pathOf(target: string): string {
  const path = target.split("?", 1)[0]!;
  const isTidy = target.startsWith("/") && !target.includes("#") &&
    !path.includes("//") && !/(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i.test(path);
  if (isTidy) return path;
  throw new MessageError(
    400,
    `Cannot use the request target ${quote(target)}, wanted a path such as ` +
      "/pods, without empty parts, . and ..",
  );
}

/** Other protocols than a kubelet's are not changed to (RFC 9110 §7.8). */
function upgradeOf(
  fields: Fields,
  body: BodyLength,
): string | undefined {
  if (!fields.list("connection").includes("upgrade")) return undefined;
  const upgrade = fields.one("upgrade");
  if (upgrade === undefined || !UPGRADES.has(upgrade.toLowerCase())) {
    return undefined;
  }
  // It would be unclear whether the first bytes belong to the body or to the
  // new protocol.
  if (body.kind !== "bytes" || body.bytes > 0) {
    throw new MessageError(
      400,
      `Cannot change to ${upgrade} behind a body: saw one, wanted none`,
    );
  }
  return upgrade;
}

/**
 * What leaves for the kubelet.
 *
 * @param authority Its `host:port`.
 */
export function forwardedHead(
  { method, target, fields, upgrade }: KubeletRequest,
  authority: string,
): Uint8Array {
  // The kubelet must not see headers for this server.
  const isOurs = (key: string) => key === "host" || key.startsWith("x-tunnel-");
  return headBytes([
    `${method} ${target} HTTP/1.1`,
    `Host: ${authority}`,
    ...fields.endToEnd(isOurs),
    ...connectionLines(upgrade),
  ]);
}

/** One request per connection, or a change of protocol. */
export function connectionLines(upgrade: string | undefined): string[] {
  return upgrade === undefined
    ? ["Connection: close"]
    : ["Connection: Upgrade", `Upgrade: ${upgrade}`];
}

/**
 * A kubelet's answer: what its head says, and the one that leaves for the
 * caller.
 */
export type KubeletAnswer =
  /** More is to come: 100 Continue and its like (RFC 9110 §15.2). */
  | { readonly kind: "interim"; readonly bytes: Uint8Array }
  /** The connection has changed its protocol. */
  | { readonly kind: "switched"; readonly bytes: Uint8Array }
  | {
    readonly kind: "final";
    readonly status: number;
    readonly bytes: Uint8Array;
    readonly body: BodyLength;
  };

/**
 * @param request What it answers.
 * @throws {MessageError} With 502.
 */
export function kubeletAnswerOf(
  answer: ResponseHead,
  request: KubeletRequest,
): KubeletAnswer {
  const { status, phrase, fields } = answer;
  const head = (connection: readonly string[]) =>
    headBytes([
      `HTTP/1.1 ${status} ${phrase}`,
      ...fields.endToEnd(() => false),
      ...connection,
    ]);
  if (isInterim(answer)) return { kind: "interim", bytes: head([]) };
  if (status === 101) {
    const upgrade = switchedTo(fields, request);
    return { kind: "switched", bytes: head(connectionLines(upgrade)) };
  }
  return {
    kind: "final",
    status,
    bytes: head(connectionLines(undefined)),
    body: answerLength(request.method, answer),
  };
}

function switchedTo(fields: Fields, { upgrade }: KubeletRequest): string {
  const seen = fields.one("upgrade");
  if (upgrade !== undefined && seen?.toLowerCase() === upgrade.toLowerCase()) {
    return seen;
  }
  throw new MessageError(
    502,
    `the kubelet changed to ${quote(seen ?? "an unnamed protocol")}, ` +
      `wanted ${upgrade ?? "none"}`,
  );
}
