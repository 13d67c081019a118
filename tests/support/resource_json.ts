/**
 * Resources of xDS as people read them: plain data, with what stands in fields
 * of type `Any` laid open.
 *
 * @module
 */

import type { Any, Struct } from "../../proto/xds/messages/google_messages.ts";
import { plainOf } from "../../proto/xds/struct_data.ts";
import {
  address,
  anyMessage,
  cluster,
  clusterLoadAssignment,
  http11ProxyTransport,
  httpConnectionManager,
  httpProtocolOptions,
  listener,
  type MessageKind,
  rawBuffer,
  routeConfiguration,
  router,
  tcpProxy,
  udpProxy,
  udpRoute,
} from "../../proto/xds/xds_messages.ts";

const KINDS: readonly MessageKind<object>[] = [
  ...[address, cluster, clusterLoadAssignment, httpConnectionManager],
  ...[http11ProxyTransport, httpProtocolOptions, listener, rawBuffer, router],
  ...[routeConfiguration, tcpProxy, udpProxy, udpRoute],
];

/** @param any An encoded `google.protobuf.Any`, as resources have it. */
// deno-lint-ignore no-explicit-any -- tests pick out of it whatever they want.
export function resourceJson(any: Uint8Array): any {
  return opened(anyMessage.decode(any));
}

function opened(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(opened);
  if ("typeUrl" in value) return openedAny(value as Any);
  if ("fields" in value) return plainOf(value as Struct);
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, opened(inner)]),
  );
}

function openedAny({ typeUrl = "", value = new Uint8Array(0) }: Any): object {
  const kind = KINDS.find((kind) => kind.typeUrl === typeUrl);
  if (kind === undefined) throw new TypeError(`Nobody knows a ${typeUrl}`);
  return { "@type": typeUrl, ...opened(kind.decode(value)) as object };
}
