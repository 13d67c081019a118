/**
 * What one stream was sent and how the client answered, for people: Pilot's syncz,
 * per kind.
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

/** A response that the client refused. */
export interface NackedResponse extends StampedResponse {
  /** The client's message, cut to `NACK_MESSAGE_MAX`. */
  readonly message: string;
  /** Of `google.rpc.Code`; clients choose it as they like. */
  readonly code: number;
  /** The resources that the client named, or all of the response. */
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
  /** The last one, until a later response is acknowledged and nothing is refused. */
  readonly nacked: NackedResponse | undefined;
  /** Since when a response is not answered. */
  readonly inFlightSinceMs: number | undefined;
  /** Whether the client should have something that it was not sent. */
  readonly isBehind: boolean;
  /** Resources that the client refused; they are not sent until they change. */
  readonly nackedNames: readonly string[];
  /** Whether any resource, or the last answered response, is refused. */
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
  /** When listeners or routes were last sent before their clusters were acked. */
  readonly early: SentEarly | undefined;
  /** Asked for, and not served here. */
  readonly foreignTypes: readonly string[];
}
