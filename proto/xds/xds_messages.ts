/**
 * Codecs for the messages of xDS that are not hot: resources, and what stands in
 * their `Any` fields.
 *
 * Layer: xDS. What the messages are is said in `messages/`; unknown fields pass.
 *
 * @module
 */

import protobuf from "protobufjs";
import { GrpcError, StatusCode } from "../grpc/status.ts";
import type { MessageCodec } from "../grpc/message_codec.ts";
import type {
  Cluster,
  Http11ProxyTransport,
  HttpProtocolOptions,
} from "./messages/cluster_messages.ts";
import type { Address, Metadata, Node } from "./messages/core_messages.ts";
import type {
  DeltaDiscoveryRequestMessage,
  DeltaDiscoveryResponseMessage,
  DiscoveryRequestMessage,
  DiscoveryResponseMessage,
} from "./messages/discovery_messages.ts";
import type { ClusterLoadAssignment } from "./messages/endpoint_messages.ts";
import type { Any, RpcStatus, Struct } from "./messages/google_messages.ts";
import type {
  HttpConnectionManager,
  Listener,
  TcpProxy,
  UdpProxyConfig,
  UdpRoute,
} from "./messages/listener_messages.ts";
import type {
  PreviousPriorities,
  RouteConfiguration,
} from "./messages/route_messages.ts";
import { TYPE_URL_PREFIX, xdsType } from "./schema.ts";

/** A message, its codec, and what an `Any` calls it. */
export interface MessageKind<T extends object> extends MessageCodec<T, T> {
  /** `type.googleapis.com/` and the full name. */
  readonly typeUrl: string;
  /** Writes a message behind what is written already. */
  write(message: T, writer: protobuf.Writer): void;
}

/** Of length-delimited fields: the number, and 2 (protobuf's wire format). */
const ANY_TYPE_TAG = 1 << 3 | 2;
const ANY_VALUE_TAG = 2 << 3 | 2;
const NAME_TAG = 1 << 3 | 2;

/** A message without fields. */
export type Nothing = Readonly<Record<never, never>>;

export const address: MessageKind<Address> = kindOf(
  "envoy.config.core.v3.Address",
);
export const metadata: MessageKind<Metadata> = kindOf(
  "envoy.config.core.v3.Metadata",
);
export const node: MessageKind<Node> = kindOf("envoy.config.core.v3.Node");
export const anyMessage: MessageKind<Any> = kindOf("google.protobuf.Any");
export const struct: MessageKind<Struct> = kindOf("google.protobuf.Struct");
export const rpcStatus: MessageKind<RpcStatus> = kindOf("google.rpc.Status");

export const cluster: MessageKind<Cluster> = kindOf(
  "envoy.config.cluster.v3.Cluster",
);
export const clusterLoadAssignment: MessageKind<ClusterLoadAssignment> = kindOf(
  "envoy.config.endpoint.v3.ClusterLoadAssignment",
);
export const listener: MessageKind<Listener> = kindOf(
  "envoy.config.listener.v3.Listener",
);
export const routeConfiguration: MessageKind<RouteConfiguration> = kindOf(
  "envoy.config.route.v3.RouteConfiguration",
);

export const tcpProxy: MessageKind<TcpProxy> = kindOf(
  "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
);
export const udpProxy: MessageKind<UdpProxyConfig> = kindOf(
  "envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig",
);
export const udpRoute: MessageKind<UdpRoute> = kindOf(
  "envoy.extensions.filters.udp.udp_proxy.v3.Route",
);
export const httpConnectionManager: MessageKind<HttpConnectionManager> = kindOf(
  "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
);
export const router: MessageKind<Nothing> = kindOf(
  "envoy.extensions.filters.http.router.v3.Router",
);
export const httpProtocolOptions: MessageKind<HttpProtocolOptions> = kindOf(
  "envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
);
export const http11ProxyTransport: MessageKind<Http11ProxyTransport> = kindOf(
  "envoy.extensions.transport_sockets.http_11_proxy.v3.Http11ProxyUpstreamTransport",
);
export const rawBuffer: MessageKind<Nothing> = kindOf(
  "envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer",
);

export const previousHosts: MessageKind<Nothing> = kindOf(
  "envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate",
);
export const previousPriorities: MessageKind<PreviousPriorities> = kindOf(
  "envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig",
);

export const discoveryRequest: MessageKind<DiscoveryRequestMessage> = kindOf(
  "envoy.service.discovery.v3.DiscoveryRequest",
);
export const discoveryResponse: MessageKind<DiscoveryResponseMessage> = kindOf(
  "envoy.service.discovery.v3.DiscoveryResponse",
);
export const deltaDiscoveryRequest: MessageKind<DeltaDiscoveryRequestMessage> =
  kindOf("envoy.service.discovery.v3.DeltaDiscoveryRequest");
export const deltaDiscoveryResponse: MessageKind<
  DeltaDiscoveryResponseMessage
> = kindOf("envoy.service.discovery.v3.DeltaDiscoveryResponse");

/** `message` as an `Any`, for a field of another message. */
export function pack<T extends object>(
  kind: MessageKind<T>,
  message: T,
): Any {
  return { typeUrl: kind.typeUrl, value: kind.encode(message) };
}

/** `message` as an encoded `Any`, such as `Resource.any`. */
export function encodeAny<T extends object>(
  kind: MessageKind<T>,
  message: T,
): Uint8Array {
  const writer = protobuf.Writer.create();
  writer.uint32(ANY_TYPE_TAG).string(kind.typeUrl);
  writer.uint32(ANY_VALUE_TAG).fork();
  kind.write(message, writer);
  return new Uint8Array(writer.ldelim().finish());
}

/**
 * `message` once for each of `names`, in their order, as {@linkcode encodeAny}
 * would: what is behind the name is encoded once for all of them. They are
 * parts of one buffer.
 *
 * @param kind One whose first field is `string name`.
 * @param message Without a name.
 */
export function encodeNamesakes<
  T extends { readonly name?: string | undefined },
>(
  kind: MessageKind<T>,
  names: readonly string[],
  message: Omit<T, "name">,
): Uint8Array[] {
  const body = kind.encode(message as T);
  const writer = protobuf.Writer.create();
  const ends = names.map((name) => {
    writer.uint32(ANY_TYPE_TAG).string(kind.typeUrl);
    writer.uint32(ANY_VALUE_TAG).fork();
    if (name !== "") writer.uint32(NAME_TAG).string(name);
    writer.raw(body).ldelim();
    return writer.len;
  });
  // They come and go together, so one buffer is enough.
  const all = new Uint8Array(writer.finish());
  return ends.map((end, index) => all.subarray(ends[index - 1] ?? 0, end));
}

/**
 * What `any` carries.
 *
 * @returns `undefined` when that is of another type, or of none.
 * @throws {GrpcError} INVALID_ARGUMENT when it is broken.
 */
export function unpack<T extends object>(
  kind: MessageKind<T>,
  any: Any | undefined,
): T | undefined {
  if (any?.typeUrl !== kind.typeUrl) return undefined;
  return kind.decode(any.value ?? new Uint8Array(0));
}

/** Like {@linkcode unpack}, out of an encoded `Any`. */
export function decodeAny<T extends object>(
  kind: MessageKind<T>,
  bytes: Uint8Array,
): T | undefined {
  return unpack(kind, anyMessage.decode(bytes));
}

/** Codecs whose messages lack what is not on the wire; int64 are numbers. */
function kindOf<T extends object>(name: string): MessageKind<T> {
  let type: protobuf.Type | undefined;
  const typeOf = () => type ??= xdsType(name);
  return {
    typeUrl: `${TYPE_URL_PREFIX}${name}`,
    // Plain data of these types is what protobufjs encodes, as it is. A copy,
    // because resources are kept: it gives a Buffer, maybe a piece of a larger.
    encode: (message) => new Uint8Array(typeOf().encode(message).finish()),
    write: (message, writer) => void typeOf().encode(message, writer),
    decode(bytes) {
      try {
        const message = typeOf().decode(bytes);
        return typeOf().toObject(message, { longs: Number }) as T;
      } catch (error) {
        // Whatever protobufjs throws here is about the peer's bytes.
        throw new GrpcError(
          StatusCode.INVALID_ARGUMENT,
          `Cannot read a ${name}: ${(error as Error).message}`,
        );
      }
    },
  };
}
