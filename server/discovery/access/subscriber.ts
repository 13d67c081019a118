/**
 * Who subscribes: what a caller was proven to be, and what it says of itself.
 *
 * A node speaks for itself (`NODE`, `NODE/anything`, `NODE~anything`) and, when
 * it relays, for the programs on it, whatever these call themselves: a relay
 * says so with `tunnel-relay`, and what it relays is known as `NODE~id`. So no
 * node is ever taken for another one. Where nobody has to prove anything, which
 * is only on loopback, ids are believed and mean nothing.
 *
 * @module
 */

import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import type { Metadata } from "../../../proto/grpc/metadata.ts";
import { parseIpAddress } from "../../../proto/peer/ip_address.ts";
import type { PeerIdentity } from "../../../proto/peer/peer_identity.ts";
import type { DiscoveryNode } from "../../../proto/xds/discovery.ts";
import {
  CONNECT_FIELD,
  MORE_CONNECT_FIELD,
  MORE_CONNECT_MAX,
  RELAY_FIELD,
} from "../../../proto/xds/relay_fields.ts";
import { provenNames } from "../../identity/proven_names.ts";
import type { ConnectProxy } from "../generate/audience.ts";

/** Longest `node.id` that is listed and logged. */
export const NODE_ID_BYTES_MAX = 1_024;

/** See the module description. */
export interface Subscriber {
  /** What it is listed as: its id, or `NODE~id` when that node relays it. */
  readonly name: string;
  /** The node that answers for it; absent where nobody has to. */
  readonly node?: string;
  readonly isRelayed: boolean;
  /** `ip:port`. */
  readonly remoteAddress: string;
  /** What it said in its first request. */
  readonly said: DiscoveryNode;
  readonly connectProxy?: ConnectProxy;
}

/** How a call came in. */
export interface Arrival {
  readonly remoteAddress: string;
  readonly identity: PeerIdentity;
  /** Whether nobody has to prove who he is where it came in: only on loopback. */
  readonly needsNoProof: boolean;
  /** To be called when it was let in: it is nobody's stranger any more. */
  readonly known?: () => void;
}

/**
 * Binds what a caller says to what it showed.
 *
 * @param metadata Of its call.
 * @param said In its first request; absent when there was nothing.
 * @throws {GrpcError} INVALID_ARGUMENT or PERMISSION_DENIED.
 */
export function subscriberOf(
  arrival: Arrival,
  metadata: Metadata,
  said: DiscoveryNode | undefined,
): Subscriber {
  const id = idOf(said);
  const { remoteAddress, needsNoProof, identity } = arrival;
  const plain = { remoteAddress, said: said! };
  if (needsNoProof) return { ...plain, name: id, isRelayed: false };
  const names = provenNames(identity);
  // Not even a token: it is let in for where it is, if at all.
  if (names === undefined && bearerToken(metadata) === "") {
    return { ...plain, name: id, isRelayed: false };
  }
  if (metadata.text(RELAY_FIELD) === "1") {
    const node = names?.[0];
    if (node === undefined) {
      throw new GrpcError(
        StatusCode.PERMISSION_DENIED,
        `Cannot relay ${quoted(id)}: only a node with a certificate may say ` +
          `${RELAY_FIELD}; join the node, or leave it out`,
      );
    }
    const connectProxy = connectProxyOf(metadata);
    return {
      ...plain,
      name: `${node}~${id}`,
      node,
      isRelayed: true,
      ...(connectProxy === undefined ? {} : { connectProxy }),
    };
  }
  const node = names === undefined
    ? id.split(/[/~]/, 1)[0]!
    : names.find((name) => speaksFor(name, id));
  if (node !== undefined && node !== "") {
    return { ...plain, name: id, node, isRelayed: false };
  }
  const own = names?.[0] ?? "its node";
  throw new GrpcError(
    StatusCode.PERMISSION_DENIED,
    `Cannot serve node.id ${quoted(id)}: the certificate is for ` +
      `${quoted(own)}; use that, or ${quoted(`${own}/NAME`)}, as node.id`,
  );
}

/** The token that came with a call; empty without one. */
export function bearerToken(metadata: Metadata): string {
  const value = metadata.text("authorization") ?? "";
  return value.startsWith("Bearer ") ? value.slice("Bearer ".length) : "";
}

function speaksFor(node: string, id: string): boolean {
  if (!id.startsWith(node)) return false;
  const next = id[node.length];
  return next === undefined || next === "/" || next === "~";
}

function idOf(said: DiscoveryNode | undefined): string {
  const id = said?.id ?? "";
  if (id === "") {
    throw new GrpcError(
      StatusCode.INVALID_ARGUMENT,
      "Cannot serve this client: its first request has no node.id; set it in " +
        "the client's bootstrap",
    );
  }
  if (id.length <= NODE_ID_BYTES_MAX) return id;
  throw new GrpcError(
    StatusCode.INVALID_ARGUMENT,
    `Cannot serve this client: its node.id has ${id.length} characters, at ` +
      `most ${NODE_ID_BYTES_MAX} are accepted`,
  );
}

/** @throws {GrpcError} INVALID_ARGUMENT. */
function connectProxyOf(metadata: Metadata): ConnectProxy | undefined {
  const text = metadata.text(CONNECT_FIELD);
  if (text === undefined) return undefined;
  const match = /^\[?([^\]]+)\]?:([0-9]{1,5})$/.exec(text);
  const host = match?.[1] ?? "";
  const port = Number(match?.[2]);
  if (parseIpAddress(host) !== undefined && port >= 1 && port <= 65_535) {
    const more = moreOf(metadata);
    return more === 0 ? { host, port } : { host, port, more };
  }
  throw new GrpcError(
    StatusCode.INVALID_ARGUMENT,
    `Cannot read ${CONNECT_FIELD}: saw ${quoted(text)}, wanted IP:PORT such ` +
      "as 127.0.0.1:3128",
  );
}

/** What cannot be read is only a help less. */
function moreOf(metadata: Metadata): number {
  const text = metadata.text(MORE_CONNECT_FIELD) ?? "";
  return /^[0-9]{1,2}$/.test(text)
    ? Math.min(Number(text), MORE_CONNECT_MAX)
    : 0;
}

/** A peer's text, made safe for a status and a log line. */
function quoted(text: string): string {
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text);
}
