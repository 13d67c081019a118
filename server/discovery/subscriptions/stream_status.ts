/**
 * What one stream was told and what it said to that, for people: Pilot's
 * syncz, per kind. In xDS's words: what was taken is acked here, what was
 * refused nacked.
 *
 * @module
 */

import type { ResourceKind } from "../../../proto/xds/resource.ts";
import type { SentEarly } from "./warming.ts";

/** A response, and when it was sent or answered. */
export interface StampedResponse {
  readonly version: string;
  readonly nonce: string;
  readonly atMs: number;
}

/** A response that was refused. */
export interface NackedResponse extends StampedResponse {
  /** The client's words, cut to `NACK_MESSAGE_MAX`. */
  readonly message: string;
  /** Of `google.rpc.Code`; clients choose it as they like. */
  readonly code: number;
  /** The resources that the client named, or all that the response brought. */
  readonly names: readonly string[];
}

/** One kind on one stream. */
export interface KindStatus {
  readonly kind: ResourceKind;
  readonly isWildcard: boolean;
  /** Names that the client asked for; a wildcard is none of them. */
  readonly nameCount: number;
  readonly sent: StampedResponse | undefined;
  readonly acked: StampedResponse | undefined;
  /** The last one, until a later response is taken and nothing is parked. */
  readonly nacked: NackedResponse | undefined;
  /** Since when a response waits for its answer. */
  readonly inFlightSinceMs: number | undefined;
  /** Whether there is something that the client should have, and was not sent. */
  readonly isBehind: boolean;
  /** Resources that the client refused, and that are not sent until they change. */
  readonly nackedNames: readonly string[];
  /** Whether something is, or all that was answered last. */
  readonly isRefused: boolean;
  readonly responses: number;
  readonly acks: number;
  readonly nacks: number;
  /** Requests about a response that was not the last (SotW: ignored). */
  readonly staleRequests: number;
}

/** One stream. */
export interface StreamStatus {
  /** In the order in which they are sent; only what was asked for. */
  readonly kinds: readonly KindStatus[];
  /** Clusters that listeners and routes wait for, some of them. */
  readonly waitsFor: readonly string[];
  /** When listeners or routes last went before clusters that they lead to. */
  readonly early: SentEarly | undefined;
  /** Asked for, and not served here. */
  readonly foreignTypes: readonly string[];
}
