/**
 * One discovery stream: a gRPC call on one side, what the client was told and
 * has to be told on the other.
 *
 * A client becomes a subscriber with its first request, which has its node; what
 * comes while somebody thinks about whether it may waits, bounded by the call's
 * window. After that everything happens within the call or the push that brings
 * it: a stream never waits for anything. Only what has taken a slice's time, such
 * as a list of twenty thousand names, goes on in the next one.
 *
 * What a client does not take costs one response and no more: while bytes of
 * one are kept, nothing else is made for it.
 *
 * Reading order: `onBody`, `#onRequest`, `tell`, `#flush`.
 *
 * @module
 */

import {
  INTERNAL_ERROR,
  reportInternalError,
} from "../../../platform/errors/internal_errors.ts";
import type { ServerCall, ServerCallEvents } from "../../../proto/grpc/call.ts";
import {
  encodingOf,
  MessageReader,
} from "../../../proto/grpc/message_reader.ts";
import {
  GrpcError,
  type Status,
  StatusCode,
} from "../../../proto/grpc/status.ts";
import type { Timer, Timers } from "../../../proto/sync/clock.ts";
import type { StreamForm } from "../../../proto/xds/ads_methods.ts";
import type { DiscoveryRequest } from "../../../proto/xds/discovery.ts";
import { NODE_BYTES_MAX } from "../../../proto/xds/node_codec.ts";
import { encodeBody, encodeHead } from "../../../proto/xds/response_encoder.ts";
import {
  REQUEST_BYTES_MAX,
  type RequestDecoder,
} from "../../../proto/xds/request_decoder.ts";
import type { View } from "../view/view.ts";
import { kindOfUrl, type ResourceKind } from "../../../proto/xds/resource.ts";
import { RESUMED_WORK_MS, type Share } from "../access/share.ts";
import {
  type Arrival,
  type Subscriber,
  subscriberOf,
} from "../access/subscriber.ts";
import type { Audience } from "../generate/audience.ts";
import { preludeOf } from "../generate/preludes.ts";
import { SLICE_MS } from "./push_queue.ts";
import { REMOVAL_PATIENCE_MS } from "../subscriptions/removals.ts";
import { StreamState } from "../subscriptions/stream_state.ts";
import { KeptResponse } from "./kept_response.ts";

/** Who calls says at once what it wants. */
export const FIRST_REQUEST_MS = 30_000;

/** What is kept of a first request, read, to one byte of it at most. */
const NODE_GROWTH = 4;

/** What goes by new routes before it knows their clusters; see `preludeOf`. */
const GRPC_GO = "gRPC Go";

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
  /** It has become a subscriber. */
  joined(stream: AdsStream): void;
  /** It is over, whether it had joined or not. */
  ended(stream: AdsStream, reason: string): void;
  /** One was refused before it began. */
  turnedAway(): void;
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

/** How far a stream has come. */
type Phase =
  | { readonly kind: "unknown" }
  /** Somebody thinks about it; its requests wait. */
  | {
    readonly kind: "judged";
    readonly held: DiscoveryRequest[];
    bytes: number;
  }
  | { readonly kind: "joined"; audience: Audience }
  | { readonly kind: "over" };

/** See the module description. */
export class AdsStream implements ServerCallEvents {
  readonly form: StreamForm;
  readonly arrival: Arrival;
  readonly call: ServerCall;
  readonly sinceMs: number;
  readonly state: StreamState;
  readonly #host: AdsHost;
  readonly #reader: MessageReader;
  #phase: Phase = { kind: "unknown" };
  #subscriber: Subscriber | undefined;
  /** By kind: the response that waits for its answer. */
  readonly #unanswered = new Map<ResourceKind, string>();
  /** Since when there is something new that was not answered. */
  #newSinceMs: number | undefined;
  readonly #kept = new KeptResponse();
  #saidUnserved = false;
  #waking: Timer | undefined;
  readonly #share: Share;
  /** What is kept of requests, as its share counts it. */
  #load = 0;
  #nodeLoad = 0;
  /** Bytes that were read and may not be replaced yet. */
  #withheld = 0;
  /** When what happens now began. */
  #beganMs = 0;

  constructor(
    call: ServerCall,
    arrival: Arrival,
    form: StreamForm,
    host: AdsHost,
    noncePrefix: string,
    share: Share,
  ) {
    this.#share = share;
    this.call = call;
    this.arrival = arrival;
    this.form = form;
    this.sinceMs = host.clock.now();
    this.#host = host;
    this.state = new StreamState({
      mode: form.mode,
      ...(form.kind === undefined ? {} : { kinds: [form.kind] }),
      noncePrefix,
    });
    this.#reader = new MessageReader({
      messageBytesMax: REQUEST_BYTES_MAX,
      encoding: encodingOf(call.metadata),
      // The decoder keeps nothing of it.
      lends: true,
      onMessage: (message) => this.#onMessage(message),
    });
    // Last: what could not be made does not leave.
    share.enter();
  }

  /** Who is at the other end; absent before the first request. */
  get subscriber(): Subscriber | undefined {
    return this.#subscriber;
  }

  /** Whom it is told like; absent before it was let in. */
  get audience(): Audience | undefined {
    return this.#phase.kind === "joined" ? this.#phase.audience : undefined;
  }

  /** Bytes of a response that the client has not taken. */
  get keptBytes(): number {
    return this.call.keptBytes;
  }

  /** Of which it has a part. */
  get share(): Share {
    return this.#share;
  }

  // --- The client speaks -----------------------------------------------------

  onBody(chunk: Uint8Array): void {
    if (this.#phase.kind === "over") return this.call.consumed(chunk.length);
    const { clock } = this.#host;
    const startMs = clock.now();
    this.#beganMs = startMs;
    try {
      this.#reader.push(chunk);
      this.#weigh();
    } catch (error) {
      this.#leave((error as Error).message);
      throw error;
    }
    this.#share.worked(clock.now() - startMs);
    if (this.#phase.kind === "judged") this.#phase.bytes += chunk.length;
    else if (this.#share.mayGoOn) this.call.consumed(chunk.length);
    else this.#withheld += chunk.length;
  }

  onHalfClose(): void {
    // Nobody could acknowledge anything any more.
    this.end({ code: StatusCode.OK, message: "" });
  }

  onWritable(): void {
    if (this.#phase.kind !== "joined") return;
    this.#beganMs = this.#host.clock.now();
    this.#flush();
  }

  onCancel({ message }: { readonly message: string }): void {
    this.#leave(message);
  }

  // --- The server speaks -----------------------------------------------------

  /**
   * Tells what is new, as far as the client takes it now.
   *
   * @param changedMs When that changed.
   */
  tell(changedMs: number): void {
    if (this.#phase.kind !== "joined") return;
    const view = this.#host.viewOf(this.#phase.audience);
    if (view === undefined) return;
    this.#beganMs = this.#host.clock.now();
    this.state.onView(view, this.#host.clock.now());
    const isOver = this.#flush();
    if (this.#unanswered.size > 0 || !isOver) this.#newSinceMs ??= changedMs;
  }

  /** Says more of what it had to say when its slice was used up. */
  goOn(): void {
    if (this.#phase.kind !== "joined") return;
    const { clock } = this.#host;
    this.#beganMs = clock.now();
    const isOver = this.#flush();
    this.#share.worked(clock.now() - this.#beganMs);
    // There was nothing to be told after all.
    if (isOver && this.#unanswered.size === 0) this.#newSinceMs = undefined;
  }

  /**
   * Rules have changed.
   *
   * @returns Whether it is of another audience now.
   */
  lookAgain(): boolean {
    if (this.#phase.kind !== "joined") return false;
    const before = this.#phase.audience;
    const audience = this.#host.audienceOf(this.#subscriber!);
    this.#phase.audience = audience;
    if (audience.key === before.key) return false;
    this.#host.enlist(this, audience, before);
    return true;
  }

  /** Something may be due by now. */
  tick(nowMs: number): void {
    if (this.#phase.kind === "unknown") return this.#awaitFirst(nowMs);
    if (this.#phase.kind !== "joined") return;
    this.#resume();
    const { keptBytes } = this.call;
    if (keptBytes > 0) return this.#watch(keptBytes, nowMs);
    if (this.state.dueMs > nowMs) return;
    this.#beganMs = nowMs;
    this.#flush();
  }

  /** Ends the stream; the client is told why. */
  end(status: Status): void {
    if (this.#phase.kind === "over") return;
    this.#leave(status.message);
    // What is kept would have to go first, and may never go.
    if (this.call.keptBytes > 0) this.call.abort(status);
    else this.call.finish(status);
  }

  #watch(bytes: number, nowMs: number): void {
    const message = this.#kept.look(bytes, nowMs);
    if (message === undefined) return;
    this.#host.observer.stalled();
    this.end({ code: StatusCode.RESOURCE_EXHAUSTED, message });
  }

  #awaitFirst(nowMs: number): void {
    if (nowMs - this.sinceMs < FIRST_REQUEST_MS) return;
    this.end({
      code: StatusCode.DEADLINE_EXCEEDED,
      message: `The client asked for nothing for ${FIRST_REQUEST_MS / 1_000} s`,
    });
  }

  /** @throws {GrpcError} RESOURCE_EXHAUSTED when its share is used up. */
  #weigh(): void {
    if (this.#phase.kind === "over") return;
    const load = this.#reader.bufferBytes + this.#nodeLoad +
      this.state.namesLength;
    const more = load - this.#load;
    this.#load = load;
    if (more !== 0) this.#share.keep(more);
  }

  /** Its share has time again: one after the other goes on. */
  #resume(): void {
    if (this.#withheld === 0 || !this.#share.mayGoOn) return;
    this.#share.worked(RESUMED_WORK_MS);
    const bytes = this.#withheld;
    this.#withheld = 0;
    this.call.consumed(bytes);
  }

  #onMessage(message: Uint8Array): void {
    if (this.#phase.kind === "over") return;
    if (this.#phase.kind === "unknown") {
      const bytes = Math.min(message.length, NODE_BYTES_MAX);
      this.#nodeLoad = NODE_GROWTH * bytes;
    }
    this.#onRequest(this.#host.decoder.decode(this.form.mode, message));
  }

  #onRequest(request: DiscoveryRequest): void {
    switch (this.#phase.kind) {
      case "unknown":
        return this.#onFirst(request);
      case "judged":
        this.#phase.held.push(request);
        return;
      case "joined":
        return this.#take(request);
      case "over":
        return;
    }
  }

  /** Only the first request is sure to say who asks. */
  #onFirst(request: DiscoveryRequest): void {
    const { arrival, call } = this;
    this.#subscriber = subscriberOf(arrival, call.metadata, request.node);
    const judging = this.#host.admit(this);
    if (judging === undefined) {
      this.#join();
      return this.#take(request);
    }
    const held = [request];
    this.#phase = { kind: "judged", held, bytes: 0 };
    judging.then(() => this.#joinLate(), (error) => this.#refuse(error));
  }

  #join(): void {
    const audience = this.#host.audienceOf(this.#subscriber!);
    this.#host.enlist(this, audience);
    const { userAgentName } = this.#subscriber!.said;
    this.state.treatment = {
      removalPatienceMs: audience.form === "grpc" ? REMOVAL_PATIENCE_MS : 0,
      offersAgain: true,
      ...userAgentName.startsWith(GRPC_GO) ? { preludeOf } : {},
    };
    this.#phase = { kind: "joined", audience };
    this.#host.joined(this);
  }

  #joinLate(): void {
    if (this.#phase.kind !== "judged") return;
    const { held, bytes } = this.#phase;
    this.#beganMs = this.#host.clock.now();
    try {
      this.#join();
      for (const request of held) this.#onRequest(request);
      this.#weigh();
    } catch (error) {
      return this.#refuse(error);
    }
    this.call.consumed(bytes);
  }

  #refuse(error: unknown): void {
    if (error instanceof GrpcError) {
      return this.end({ code: error.code, message: error.message });
    }
    reportInternalError("stream", error);
    this.end({ code: StatusCode.INTERNAL, message: INTERNAL_ERROR });
  }

  #take(request: DiscoveryRequest): void {
    const { observer, clock } = this.#host;
    const nowMs = clock.now();
    this.state.onRequest(request, nowMs);
    const kind = this.form.kind ?? kindOfUrl(request.typeUrl);
    observer.requested(kind);
    if (kind !== undefined) this.#noteAnswer(kind, request);
    else this.#noteUnserved(request.typeUrl);
    this.#flush();
    if (this.#unanswered.size > 0 || this.#newSinceMs === undefined) return;
    observer.converged(nowMs - this.#newSinceMs);
    this.#newSinceMs = undefined;
  }

  #noteUnserved(typeUrl: string): void {
    if (this.#saidUnserved) return;
    this.#saidUnserved = true;
    this.#host.observer.unserved(this, typeUrl);
  }

  #noteAnswer(kind: ResourceKind, request: DiscoveryRequest): void {
    const { responseNonce, errorDetail } = request;
    if (this.#unanswered.get(kind) !== responseNonce) return;
    this.#unanswered.delete(kind);
    if (errorDetail === undefined) return;
    this.#newSinceMs = undefined;
    this.#host.observer.refused(this, kind, errorDetail.message);
  }

  /** @returns Whether nothing is left for the next slice. */
  #flush(): boolean {
    const { clock, observer } = this.#host;
    const { call, state, form } = this;
    while (call.keptBytes === 0) {
      const nowMs = clock.now();
      if (nowMs >= this.#beganMs + SLICE_MS) {
        this.#host.later(this);
        return false;
      }
      const out = state.next(nowMs);
      if (out === undefined) {
        this.#wakeSoon(nowMs);
        return true;
      }
      const { kind, body, nonce } = out;
      const bytes = encodeBody(form.mode, body);
      this.#unanswered.set(kind, nonce);
      const head = encodeHead(form.mode, nonce, this.#host.server);
      call.sendMessage(head, bytes);
      observer.sent(kind, bytes.length);
      this.#kept.sent(call.keptBytes, clock.now());
    }
    return true;
  }

  /** Ticks are far apart for what a client's callers wait for. */
  #wakeSoon(nowMs: number): void {
    const { soonMs } = this.state;
    if (soonMs === Infinity || this.#waking !== undefined) return;
    this.#waking = this.#host.clock.after(Math.max(1, soonMs - nowMs), () => {
      this.#waking = undefined;
      this.tick(this.#host.clock.now());
    });
  }

  #leave(reason: string): void {
    if (this.#phase.kind === "over") return;
    const { audience } = this;
    this.#waking?.cancel();
    this.#phase = { kind: "over" };
    this.#share.keep(-this.#load);
    this.#share.leave();
    this.#host.ended(this, reason, audience);
  }
}
