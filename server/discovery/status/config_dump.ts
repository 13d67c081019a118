/**
 * Resources in full, as people read them: protobuf's JSON, as far as it is known
 * what is in them.
 *
 * @module
 */

import { type Resource, RESOURCE_KINDS } from "../../../proto/xds/resource.ts";
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
} from "../../../proto/xds/xds_messages.ts";
import type { AdsStream } from "../streams/ads_stream.ts";
import type { View } from "../view.ts";

/** Everything that an `Any` may be here. */
const KINDS: ReadonlyMap<string, MessageKind<object>> = new Map(
  [
    address,
    cluster,
    clusterLoadAssignment,
    http11ProxyTransport,
    httpConnectionManager,
    httpProtocolOptions,
    listener,
    rawBuffer,
    routeConfiguration,
    router,
    tcpProxy,
    udpProxy,
    udpRoute,
  ].map((kind) => [kind.typeUrl, kind as unknown as MessageKind<object>]),
);

/** What one client should have, in full. */
export function configOf(
  { subscriber, audience, state }: AdsStream,
  view: View,
): unknown {
  const { holdings } = state;
  return {
    client: subscriber!.name,
    form: audience!.form,
    ...Object.fromEntries(RESOURCE_KINDS.map((kind) => [
      kind,
      (holdings.get(kind) ?? []).flatMap(({ name }) => {
        const resource = view.resources[kind].get(name);
        return resource === undefined ? [] : [resourceText(resource)];
      }),
    ])),
  };
}

function resourceText({ version, any }: Resource): unknown {
  return { version, resource: plain(anyMessage.decode(any)) };
}

/** Octets become base64; an `Any` what it carries. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return value.toBase64();
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const { typeUrl, value: octets } = value as {
    readonly typeUrl?: unknown;
    readonly value?: unknown;
  };
  if (typeof typeUrl === "string") {
    const kind = KINDS.get(typeUrl);
    const content = octets instanceof Uint8Array ? octets : new Uint8Array(0);
    return kind === undefined
      ? { "@type": typeUrl, value: content.toBase64() }
      : { "@type": typeUrl, ...plain(kind.decode(content)) as object };
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, plain(one)]),
  );
}
