/**
 * The messages between clients and servers of xDS, as both state machines see
 * them.
 *
 * Layer: xDS. Names and rules are those of the xDS v3 protocol
 * (`envoy.service.discovery.v3`). Bytes are for others: a server has
 * `request_decoder.ts` and `response_encoder.ts`, a client `client_codec.ts`.
 *
 * @module
 */

import type { Resource } from "./resource.ts";

/** State of the world, or only what differs. */
export type DiscoveryMode = "sotw" | "delta";

/** The client: `envoy.config.core.v3.Node`. */
export interface DiscoveryNode {
  readonly id: string;
  readonly cluster: string;
  /** A `google.protobuf.Struct` as plain data. */
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly locality: {
    readonly region: string;
    readonly zone: string;
    readonly subZone: string;
  };
  readonly userAgentName: string;
  readonly userAgentVersion: string;
  readonly clientFeatures: readonly string[];
}

/** Why a response was refused: `google.rpc.Status`. Its presence is the NACK. */
export interface ErrorDetail {
  readonly code: number;
  readonly message: string;
}

/** `DiscoveryRequest`. */
export interface SotwRequest {
  readonly mode: "sotw";
  /** Only sure to be there in the first request of a stream. */
  readonly node: DiscoveryNode | undefined;
  readonly typeUrl: string;
  readonly versionInfo: string;
  /**
   * In the order of the request. Equal lists are the same array for as long as
   * it is in use: a thousand clients with the same request share one, and `===`
   * means "unchanged".
   */
  readonly resourceNames: readonly string[];
  /** Empty: not about a response. */
  readonly responseNonce: string;
  readonly errorDetail: ErrorDetail | undefined;
}

/** `DeltaDiscoveryRequest`. */
export interface DeltaRequest {
  readonly mode: "delta";
  readonly node: DiscoveryNode | undefined;
  readonly typeUrl: string;
  readonly subscribe: readonly string[];
  readonly unsubscribe: readonly string[];
  /** What a reconnecting client has, by name; only in a first request. */
  readonly initialVersions: ReadonlyMap<string, string>;
  readonly responseNonce: string;
  readonly errorDetail: ErrorDetail | undefined;
}

export type DiscoveryRequest = SotwRequest | DeltaRequest;

/** A response, all but its nonce: the part that many clients can share. */
export interface ResponseBody {
  readonly typeUrl: string;
  /**
   * Equal bodies have the same array when that costs nothing, so that it is
   * encoded once.
   */
  readonly resources: readonly Resource[];
  /** Delta only: names that were removed, or do not exist. */
  readonly removed: readonly string[];
  /**
   * SotW only, of whole states: names that were requested and are not there. A
   * client that knows `resource_errors` (gRFC A88) need not wait 15 s to
   * conclude it.
   */
  readonly absent?: readonly string[];
  /** `version_info`, or `system_version_info` of Delta. */
  readonly version: string;
}

/** One resource, as a client gets it. */
export interface ReceivedResource {
  /** Its own, in both modes. */
  readonly name: string;
  /** Its own in Delta, that of the response in SotW. */
  readonly version: string;
  /**
   * The type of `value`. Empty when Delta reports an unchanged resource (a
   * heartbeat).
   */
  readonly typeUrl: string;
  readonly value: Uint8Array;
}

/** A response, as a client gets it. */
export interface DiscoveryResponse {
  readonly typeUrl: string;
  /** `version_info`, or `system_version_info` of Delta. */
  readonly version: string;
  readonly nonce: string;
  readonly resources: readonly ReceivedResource[];
  /** Delta only. */
  readonly removed: readonly string[];
}
