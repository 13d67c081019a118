/**
 * Which node a subscriber is: the node that a caller authenticates as, and the
 * id that it sends. The authorizers of agents decide whether it may subscribe,
 * since nodes subscribe.
 *
 * A node may use its own ids (`NODE`, `NODE/anything`, `NODE~anything`) and,
 * when it relays, any id of the programs on it: a relay sends `tunnel-relay`,
 * and a program behind it is listed as `NODE~id`. So no node is ever taken for
 * another one. Where callers need no authentication, which is only on loopback,
 * every id is accepted and means nothing.
 *
 * @module
 */

import { quoted } from "../../../proto/peer/quoted.ts";
import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import type { Metadata } from "../../../proto/grpc/metadata.ts";
import { isLoopback, parseIpAddress } from "../../../proto/peer/ip_address.ts";
import type { PeerIdentity } from "../../../proto/peer/peer_identity.ts";
import type { DiscoveryNode } from "../../../proto/xds/discovery.ts";
import {
  CONNECT_FIELD,
  MORE_CONNECT_FIELD,
  MORE_CONNECT_MAX,
  RELAY_FIELD,
} from "../../../proto/xds/relay_fields.ts";
import { provenNames } from "../../../policy/subject.ts";
import type { ConnectProxy } from "../generate/client_group.ts";
import { hostOf } from "../../../proto/peer/host_port.ts";
import { NO_IDENTIFIERS } from "../../../proto/peer/identifiers.ts";
import type {
  LinkAuthorization,
  LinkCandidate,
  LinkPeer,
  LinkRefusal,
} from "../../../proto/link/link.ts";

/** Longest `node.id` that is listed and logged. */
export const NODE_ID_BYTES_MAX = 1_024;

/** See the module description. */
export interface Subscriber {
  /** Its name in lists: its id, or `NODE~id` when that node relays it. */
  readonly name: string;
  /** The node that answers for it; absent where no authentication is needed. */
  readonly node?: string;
  /** The node of its first request. */
  readonly xdsNode: DiscoveryNode;
  readonly connectProxy?: ConnectProxy | undefined;
}

/** How a call came in. */
export interface CallOrigin {
  readonly remoteAddress: string;
  readonly identity: PeerIdentity;
  /** Whether the port needs no authentication: only on loopback. */
  readonly needsNoProof: boolean;
  /** To be called when the caller is admitted: it is authenticated then. */
  readonly known?: () => void;
}

/**
 * Binds the id that a caller sends to the identity that it proved.
 *
 * @param metadata Of its call.
 * @param xdsNode Of its first request; absent when that has none.
 * @throws {GrpcError} INVALID_ARGUMENT or PERMISSION_DENIED.
 */
export function subscriberOf(
  origin: CallOrigin,
  metadata: Metadata,
  xdsNode: DiscoveryNode | undefined,
): Subscriber {
  const id = idOf(xdsNode);
  const { needsNoProof, identity } = origin;
  const plain = { name: id, xdsNode: xdsNode! };
  if (needsNoProof) return plain;
  const names = provenNames(identity);
  // Neither certificate nor token: the caller must be on loopback.
  if (names === undefined && metadata.bearerToken === "") {
    return plain;
  }
  if (metadata.text(RELAY_FIELD) === "1") {
    const node = names?.[0];
    if (node === undefined) {
      throw new GrpcError(
        StatusCode.PERMISSION_DENIED,
        `Cannot relay ${shown(id)}: only a node with a certificate may say ` +
          `${RELAY_FIELD}; join the node, or leave it out`,
      );
    }
    const connectProxy = connectProxyOf(metadata);
    return { ...plain, name: `${node}~${id}`, node, connectProxy };
  }
  const node = names === undefined
    ? id.split(/[/~]/, 1)[0]!
    : names.find((name) => speaksFor(name, id));
  if (node !== undefined && node !== "") {
    return { ...plain, node };
  }
  const own = names?.[0] ?? "its node";
  throw new GrpcError(
    StatusCode.PERMISSION_DENIED,
    `Cannot serve node.id ${shown(id)}: the certificate is for ` +
      `${shown(own)}; use that, or ${shown(`${own}/NAME`)}, as node.id`,
  );
}

function speaksFor(node: string, id: string): boolean {
  if (!id.startsWith(node)) return false;
  const next = id[node.length];
  return next === undefined || next === "/" || next === "~";
}

function idOf(xdsNode: DiscoveryNode | undefined): string {
  const id = xdsNode?.id ?? "";
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
    `Cannot read ${CONNECT_FIELD}: saw ${shown(text)}, wanted IP:PORT such ` +
      "as 127.0.0.1:3128",
  );
}

/** A value that cannot be read is ignored: the field only helps. */
function moreOf(metadata: Metadata): number {
  const text = metadata.text(MORE_CONNECT_FIELD) ?? "";
  return /^[0-9]{1,2}$/.test(text)
    ? Math.min(Number(text), MORE_CONNECT_MAX)
    : 0;
}

/** The limit of a node's id, which holds its name and more. */
const ID_LENGTH_SHOWN = 200;

function shown(text: string): string {
  return quoted(text, ID_LENGTH_SHOWN);
}

/** Asks the authorizers of agents. */
export type Admit = (candidate: LinkCandidate) => LinkAuthorization;

/**
 * Refuses callers that cannot be admitted, whatever they send, before the server
 * keeps anything for them.
 *
 * @throws {GrpcError} UNAUTHENTICATED.
 */
export function refuseUnauthenticated(
  { needsNoProof, identity, remoteAddress }: CallOrigin,
  metadata: Metadata,
): void {
  if (needsNoProof || identity.kind !== "anonymous") return;
  // A server may admit anonymous agents; discovery is for nodes.
  if (metadata.bearerToken !== "" || isLoopback(hostOf(remoteAddress))) return;
  throw new GrpcError(
    StatusCode.UNAUTHENTICATED,
    "Cannot serve this client: it showed neither a certificate nor a " +
      "token; use the node's, or the relay of an agent (--xds-listen)",
  );
}

/**
 * Authorizes one subscriber.
 *
 * @param metadata Of its call, with a token if it has one.
 * @returns Nothing, or a promise of nothing, when it may subscribe.
 * @throws {GrpcError} Or rejects with it: why it may not.
 */
export function admitSubscriber(
  origin: CallOrigin,
  subscriber: Subscriber,
  metadata: Metadata,
  admit: Admit,
): void | Promise<void> {
  if (origin.needsNoProof) return;
  const peer = peerOf(origin, subscriber);
  const decision = admit({ peer, token: metadata.bearerToken });
  if (decision instanceof Promise) return decision.then(throwRefusal);
  throwRefusal(decision);
}

/** A subscriber as the authorizers of agents see it. */
export function peerOf(
  { identity, remoteAddress }: CallOrigin,
  { node, xdsNode }: Subscriber,
): LinkPeer {
  return {
    agentId: node ?? "",
    identifiers: NO_IDENTIFIERS,
    identity,
    remoteAddress,
    carrier: "packets",
    software: xdsNode.userAgentName,
  };
}

function throwRefusal(refusal: LinkRefusal | undefined): void {
  if (refusal === undefined) return;
  throw new GrpcError(refusal.code, refusal.message, refusal.tunnelCode);
}
