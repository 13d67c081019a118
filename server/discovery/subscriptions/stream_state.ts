/**
 * What one xDS stream was told, and what it has to be told next.
 *
 * Pure: requests and views go in, replies come out, and time is handed in.
 * Neither transport nor identity is known here, nor what is in a resource.
 * After each {@linkcode StreamState.onRequest} and
 * {@linkcode StreamState.onView}, and at {@linkcode StreamState.dueMs}, call
 * {@linkcode StreamState.next} until it has nothing.
 *
 * @module
 */

import type {
  DiscoveryMode,
  DiscoveryReply,
  DiscoveryRequest,
} from "../../../proto/xds/discovery.ts";
import type { ResourceKind } from "../../../proto/xds/resource.ts";
import type { View } from "../view.ts";
import type { StreamStatus } from "./stream_status.ts";

export interface StreamStateOptions {
  readonly mode: DiscoveryMode;
  /** All, if absent. One kind: a request may leave out its type. */
  readonly kinds?: readonly ResourceKind[];
  /**
   * What the stream's nonces begin with. Nonces of two streams should differ, so
   * that one that outlived its stream is known as such; none is needed for it.
   */
  readonly noncePrefix?: string;
}

/** A response that may leave now. */
export interface OutgoingReply {
  readonly kind: ResourceKind;
  readonly reply: DiscoveryReply;
  readonly nonce: string;
}

/** See the module description. */
export class StreamState {
  constructor(options: StreamStateOptions) {
    void options;
  }

  /**
   * @throws {GrpcError} INVALID_ARGUMENT, RESOURCE_EXHAUSTED: the stream has to
   *   end with it.
   */
  onRequest(request: DiscoveryRequest, nowMs: number): void {
    void request, nowMs;
  }

  /** What is to be told from now on. Nothing is told before the first view. */
  onView(view: View, nowMs: number): void {
    void view, nowMs;
  }

  /** Counts as sent when it is returned. */
  next(nowMs: number): OutgoingReply | undefined {
    void nowMs;
    return undefined;
  }

  /** When `next` may have something without a request or view; else Infinity. */
  get dueMs(): number {
    return Infinity;
  }

  /** Made when it is asked for. */
  get status(): StreamStatus {
    return { kinds: [], foreignTypes: [] };
  }
}
