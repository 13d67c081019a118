/**
 * Resources as plain data, for tests that look into them: `Any` fields are
 * unpacked, and numbers stay as they are on the wire.
 *
 * @module
 */

import { GrpcError } from "../../../proto/grpc/status.ts";
import type { MessageKind } from "../../../proto/xds/message_kind.ts";
import {
  Address,
  Any,
  Cluster,
  ClusterLoadAssignment,
  Http11ProxyUpstreamTransport,
  HttpConnectionManager,
  HttpProtocolOptions,
  Listener,
  PreviousHostsPredicate,
  PreviousPrioritiesConfig,
  RawBuffer,
  RouteConfiguration,
  Router,
  type Struct,
  TcpProxy,
  UdpProxyConfig,
  UdpRoute,
} from "../../../proto/xds/xds_messages.ts";
import { plainOf, type PlainValue } from "../../../proto/xds/struct_data.ts";

/** The unpacked value. */
const KINDS: readonly MessageKind<object>[] = [
  ...[Cluster, ClusterLoadAssignment, Listener, RouteConfiguration],
  ...[Address, HttpConnectionManager, Http11ProxyUpstreamTransport],
  ...[HttpProtocolOptions, RawBuffer, Router, TcpProxy],
  ...[UdpProxyConfig, UdpRoute],
  ...[PreviousHostsPredicate, PreviousPrioritiesConfig],
];

/** The fields of these messages that hold a `google.protobuf.Struct`. */
const STRUCTS = "filterMetadata";

/** @param any An encoded `google.protobuf.Any`, as resources have it. */
// deno-lint-ignore no-explicit-any -- tests pick out of it whatever they want.
export function resourceJson(any: Uint8Array): any {
  return resourceData(Any.decode(any));
}

/** @param message Of `xds_messages.ts`: a resource, or an `Any` with one. */
export function resourceData(message: unknown): PlainValue {
  if (Array.isArray(message)) return message.map(resourceData);
  if (message instanceof Uint8Array) return message.toBase64();
  if (typeof message !== "object" || message === null) {
    return message as PlainValue;
  }
  const { typeUrl, value } = message as Readonly<Record<string, unknown>>;
  if (typeof typeUrl === "string") {
    return anyData(typeUrl, value as Uint8Array | undefined);
  }
  return Object.fromEntries(
    Object.entries(message).map(([field, inner]) => [
      field,
      field === STRUCTS ? structsData(inner) : resourceData(inner),
    ]),
  );
}

function anyData(
  typeUrl: string,
  value: Uint8Array = new Uint8Array(0),
): PlainValue {
  const type = { "@type": typeUrl };
  const kind = KINDS.find((each) => each.typeUrl === typeUrl);
  try {
    const inner = kind === undefined ? { value } : kind.decode(value);
    return { ...type, ...resourceData(inner) as object };
  } catch (error) {
    if (!(error instanceof GrpcError)) throw error;
    return { ...type, error: error.message };
  }
}

function structsData(structs: object): PlainValue {
  return Object.fromEntries(
    Object.entries(structs).map(([name, struct]) => [
      name,
      structData(struct as Struct),
    ]),
  );
}

function structData(struct: Struct): PlainValue {
  try {
    return plainOf(struct);
  } catch (error) {
    if (!(error instanceof GrpcError)) throw error;
    return { error: error.message };
  }
}
