/**
 * Whether a subscriber may subscribe: the authorizers of agents decide, since
 * nodes subscribe.
 *
 * @module
 */

import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import type { Metadata } from "../../../proto/grpc/metadata.ts";
import { hostOf } from "../../../proto/peer/host_port.ts";
import { isLoopback } from "../../../proto/peer/ip_address.ts";
import { NO_IDENTIFIERS } from "../../../proto/peer/identifiers.ts";
import type {
  LinkAuthorization,
  LinkPeer,
  LinkRefusal,
} from "../../../proto/link/link.ts";
import type { LinkCandidate } from "../../../proto/link/link.ts";
import { bearerToken, type CallOrigin, type Subscriber } from "./subscriber.ts";

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
  if (bearerToken(metadata) !== "" || isLoopback(hostOf(remoteAddress))) return;
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
  const decision = admit({ peer, token: bearerToken(metadata) });
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
