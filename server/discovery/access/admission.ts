/**
 * Whether a subscriber may subscribe: the same judges decide that say who may be
 * an agent, since it is nodes that subscribe.
 *
 * @module
 */

import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import type { Metadata } from "../../../proto/grpc/metadata.ts";
import { hostOf } from "../../../proto/peer/host_port.ts";
import { isLoopback } from "../../../proto/peer/ip_address.ts";
import { NO_IDENTIFIERS } from "../../../proto/peer/identifiers.ts";
import type {
  Admission,
  LinkPeer,
  LinkRefusal,
} from "../../../proto/link/link.ts";
import type { LinkCandidate } from "../../links/admission.ts";
import { type Arrival, bearerToken, type Subscriber } from "./subscriber.ts";

/** Asks the judges of agents. */
export type Admit = (candidate: LinkCandidate) => Admission;

/**
 * Turns those away that cannot be let in, whatever they say, before anything is
 * kept for them.
 *
 * @throws {GrpcError} UNAUTHENTICATED.
 */
export function assertSomebody(
  { needsNoProof, identity, remoteAddress }: Arrival,
  metadata: Metadata,
): void {
  if (needsNoProof || identity.kind !== "anonymous") return;
  // Agents may be let in without proof; what is served here is for nodes.
  if (bearerToken(metadata) !== "" || isLoopback(hostOf(remoteAddress))) return;
  throw new GrpcError(
    StatusCode.UNAUTHENTICATED,
    "Cannot serve this client: it showed neither a certificate nor a " +
      "token; use the node's, or the relay of an agent (--xds-listen)",
  );
}

/**
 * Judges one subscriber.
 *
 * @param metadata Of its call, with a token if it has one.
 * @returns Nothing when it may go on, and then maybe only after a while.
 * @throws {GrpcError} Or rejects with it: why it may not.
 */
export function admitSubscriber(
  arrival: Arrival,
  subscriber: Subscriber,
  metadata: Metadata,
  admit: Admit,
): void | Promise<void> {
  if (arrival.needsNoProof) return;
  const peer = peerOf(arrival, subscriber);
  const verdict = admit({ peer, token: bearerToken(metadata) });
  if (verdict instanceof Promise) return verdict.then(throwRefusal);
  throwRefusal(verdict);
}

/** A subscriber as judges of agents see it. */
export function peerOf(
  { identity, remoteAddress }: Arrival,
  { node, said }: Subscriber,
): LinkPeer {
  return {
    agentId: node ?? "",
    identifiers: NO_IDENTIFIERS,
    identity,
    remoteAddress,
    carrier: "packets",
    software: said.userAgentName,
  };
}

function throwRefusal(refusal: LinkRefusal | undefined): void {
  if (refusal === undefined) return;
  throw new GrpcError(refusal.code, refusal.message);
}
