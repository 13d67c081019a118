/**
 * What surrounds a discovery stream: who lets its client in, what that is told,
 * and who counts.
 *
 * @module
 */

import type { Timers } from "../../../proto/sync/clock.ts";
import type { RequestDecoder } from "../../../proto/xds/request_decoder.ts";
import type { ResourceKind } from "../../../proto/xds/resource.ts";
import type { Subscriber } from "../access/subscriber.ts";
import type { Audience } from "../generate/audience.ts";
import type { View } from "../view.ts";
import type { AdsStream } from "./ads_stream.ts";

/** What a stream needs of the server. */
export interface AdsHost {
  readonly clock: Timers;
  /** What clients are told of who answers them. */
  readonly server: string;
  readonly decoder: RequestDecoder;
  /** @throws {GrpcError} Or rejects with it, when it may not subscribe. */
  admit(stream: AdsStream): void | Promise<void>;
  audienceOf(subscriber: Subscriber): Audience;
  /** What it is to be told now; nothing before that was made. */
  viewOf(audience: Audience): View | undefined;
  /**
   * It is of this audience from now on.
   *
   * @param before Of which it was.
   * @throws {GrpcError} RESOURCE_EXHAUSTED, unless it was of one before.
   */
  enlist(stream: AdsStream, audience: Audience, before?: Audience): void;
  /** It has become a subscriber: tell it what there is, and what is new. */
  joined(stream: AdsStream): void;
  /** It has more to say, and others come first; see `AdsStream.goOn`. */
  later(stream: AdsStream): void;
  /** Once for every stream, also for those that never joined. */
  ended(stream: AdsStream, reason: string, audience?: Audience): void;
  readonly observer: AdsObserver;
}

/** What happens on streams, for the metrics and the log. */
export interface AdsObserver {
  requested(kind: ResourceKind | undefined): void;
  /** For the first time on this stream it asks for what is not served. */
  unserved(stream: AdsStream, typeUrl: string): void;
  sent(kind: ResourceKind, bytes: number): void;
  refused(stream: AdsStream, kind: ResourceKind, message: string): void;
  /** Everything that was told of a change was answered, so long after it. */
  converged(tookMs: number): void;
  /** A client is given up that takes nothing. */
  stalled(): void;
}
