/**
 * One discovery stream: a gRPC call on one side, what the client was sent and
 * what it is to be sent next on the other.
 *
 * A client becomes a subscriber with its first request, which has its node.
 * Requests that come while it is being authorized wait, bounded by the call's
 * window. After that a stream never waits: all work is done within the call or
 * the push that causes it. Only work that exceeds a slice, such as a list of
 * twenty thousand names, goes on in the next slice.
 *
 * A client that does not read costs one response and no more: while bytes of a
 * response are unread, nothing else is made for it.
 *
 * Reading order: `onBody`, `#onRequest`, `push`, `#flush`.
 *
 * @module
 */

import { messageOf } from "../../../platform/errors/error_code.ts";
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
import type { Timer } from "../../../proto/sync/clock.ts";
import type { StreamForm } from "../../../proto/xds/ads_methods.ts";
import type { DiscoveryRequest } from "../../../proto/xds/discovery.ts";
import { encodeBody, encodeHead } from "../../../proto/xds/response_encoder.ts";
import { REQUEST_BYTES_MAX } from "../../../proto/xds/request_decoder.ts";
import type { OpenStreams } from "./open_streams.ts";
import { kindOfUrl } from "../../../proto/xds/resource.ts";
import type { Quota } from "../access/quota.ts";
import {
  type CallOrigin,
  type Subscriber,
  subscriberOf,
} from "../access/subscriber.ts";
import type { ClientGroup } from "../generate/client_group.ts";
import { interimRoutesOf } from "../generate/routes.ts";
import { RequestAccount, UnreadResponse } from "./request_account.ts";
import { SLICE_MS } from "../../../platform/time/slices.ts";
import { REMOVAL_PATIENCE_MS } from "../subscriptions/removals.ts";
import { XdsStreamState } from "../subscriptions/xds_stream_state.ts";

/** How long the first request is awaited: a client sends it at once. */
export const FIRST_REQUEST_MS = 30_000;

/** It uses new routes before it knows their clusters; see `interimRoutesOf`. */
const GRPC_GO = "gRPC Go";

/** How far a stream has come. */
type Phase =
  | { readonly kind: "unknown" }
  /** The authorizers have not decided yet; its requests wait. */
  | {
    readonly kind: "authorizing";
    readonly held: DiscoveryRequest[];
    bytes: number;
  }
  | { readonly kind: "joined"; group: ClientGroup }
  | { readonly kind: "over" };

/** See the module description. */
export class SubscriberStream implements ServerCallEvents {
  readonly sinceMs: number;
  readonly state: XdsStreamState;
  readonly #reader: MessageReader;
  #phase: Phase = { kind: "unknown" };
  #subscriber: Subscriber | undefined;
  /** Since when a change is not acknowledged; absent: all are. */
  #newSinceMs: number | undefined;
  readonly #unread = new UnreadResponse();
  #hasReportedUnserved = false;
  #waking: Timer | undefined;
  readonly #account: RequestAccount;
  /** When the slice that runs now began. */
  #beganMs = 0;

  constructor(
    readonly call: ServerCall,
    readonly origin: CallOrigin,
    readonly form: StreamForm,
    private readonly host: OpenStreams,
    noncePrefix: string,
    readonly quota: Quota,
  ) {
    this.sinceMs = host.timers.now();
    this.state = new XdsStreamState({
      mode: form.mode,
      kinds: form.kind && [form.kind],
      noncePrefix,
    });
    this.#reader = new MessageReader({
      messageBytesMax: REQUEST_BYTES_MAX,
      encoding: encodingOf(call.metadata),
      // The decoder does not keep it.
      lends: true,
      onMessage: (message) => this.#onMessage(message),
    });
    // Last: a stream whose constructor throws never leaves.
    this.#account = new RequestAccount(quota, call);
  }

  /** Who is at the other end; absent before the first request. */
  get subscriber(): Subscriber | undefined {
    return this.#subscriber;
  }

  /** Absent before the client is admitted. */
  get group(): ClientGroup | undefined {
    return this.#phase.kind === "joined" ? this.#phase.group : undefined;
  }

  /** Bytes of a response that the client has not read. */
  get keptBytes(): number {
    return this.call.keptBytes;
  }

  // --- From the client -------------------------------------------------------

  onBody(chunk: Uint8Array): void {
    if (this.#phase.kind === "over") return this.call.consumed(chunk.length);
    const { timers: clock } = this.host;
    const startMs = clock.now();
    this.#beganMs = startMs;
    try {
      this.#reader.push(chunk);
      this.#countKept();
    } catch (error) {
      this.#leave(messageOf(error));
      throw error;
    }
    this.#account.worked(clock.now() - startMs);
    if (this.#phase.kind === "authorizing") this.#phase.bytes += chunk.length;
    else this.#account.consumed(chunk.length);
  }

  onHalfClose(): void {
    // The client cannot acknowledge anything any more.
    this.end({ code: StatusCode.OK, message: "" });
  }

  onWritable(): void {
    if (this.#phase.kind !== "joined") return;
    this.#beganMs = this.host.timers.now();
    this.#flush();
  }

  onCancel({ message }: { readonly message: string }): void {
    this.#leave(message);
  }

  // --- To the client ---------------------------------------------------------

  /**
   * Sends what is new, as far as the client reads it now.
   *
   * @param changedMs When that changed.
   */
  push(changedMs: number): void {
    if (this.#phase.kind !== "joined") return;
    const view = this.host.viewOf(this.#phase.group);
    if (view === undefined) return;
    this.#beganMs = this.host.timers.now();
    this.state.onView(view, this.host.timers.now());
    const isOver = this.#flush();
    if (this.state.isOpen || !isOver) this.#newSinceMs ??= changedMs;
  }

  /** Sends more of what was left when its slice was used up. */
  pushRest(): void {
    if (this.#phase.kind !== "joined") return;
    const { timers: clock } = this.host;
    this.#beganMs = clock.now();
    const isOver = this.#flush();
    this.#account.worked(clock.now() - this.#beganMs);
    // Nothing was left to be sent after all.
    if (isOver && !this.state.isOpen) this.#newSinceMs = undefined;
  }

  /**
   * The rules about visible services have changed.
   *
   * @returns Whether the stream is of another group now.
   */
  reconsider(): boolean {
    if (this.#phase.kind !== "joined") return false;
    const before = this.#phase.group;
    const group = this.host.clientGroupOf(this.#subscriber!);
    this.#phase.group = group;
    if (group.key === before.key) return false;
    this.host.joinGroup(this, group, before);
    return true;
  }

  /** Time has passed: sends or ends what is due. */
  tick(nowMs: number): void {
    if (this.#phase.kind === "unknown") return this.#awaitFirst(nowMs);
    if (this.#phase.kind !== "joined") return;
    this.#account.resume();
    const { keptBytes } = this.call;
    if (keptBytes > 0) return this.#watch(keptBytes, nowMs);
    if (this.state.dueMs > nowMs) return;
    this.#beganMs = nowMs;
    this.#flush();
  }

  /** Ends the stream; the client receives the status. */
  end(status: Status): void {
    if (this.#phase.kind === "over") return;
    this.#leave(status.message);
    // The status would wait behind unread bytes, perhaps without end.
    if (this.call.keptBytes > 0) this.call.abort(status);
    else this.call.finish(status);
  }

  #watch(bytes: number, nowMs: number): void {
    const message = this.#unread.look(bytes, nowMs);
    if (message === undefined) return;
    this.host.metrics.counters.stalled_clients_reset_total.add();
    this.end({ code: StatusCode.RESOURCE_EXHAUSTED, message });
  }

  #awaitFirst(nowMs: number): void {
    if (nowMs - this.sinceMs < FIRST_REQUEST_MS) return;
    this.end({
      code: StatusCode.DEADLINE_EXCEEDED,
      message: `The client asked for nothing for ${FIRST_REQUEST_MS / 1_000} s`,
    });
  }

  /** @throws {GrpcError} RESOURCE_EXHAUSTED when its quota is used up. */
  #countKept(): void {
    if (this.#phase.kind === "over") return;
    this.#account.keep(this.#reader.bufferBytes + this.state.namesLength);
  }

  #onMessage(message: Uint8Array): void {
    if (this.#phase.kind === "over") return;
    if (this.#phase.kind === "unknown") this.#account.noteNode(message.length);
    this.#onRequest(this.host.decoder.decode(this.form.mode, message));
  }

  #onRequest(request: DiscoveryRequest): void {
    switch (this.#phase.kind) {
      case "unknown":
        return this.#onFirst(request);
      case "authorizing":
        this.#phase.held.push(request);
        return;
      case "joined":
        return this.#onSubscribed(request);
      case "over":
        return;
    }
  }

  /** Only the first request is sure to have a node. */
  #onFirst(request: DiscoveryRequest): void {
    const { origin, call } = this;
    this.#subscriber = subscriberOf(origin, call.metadata, request.node);
    const authorizing = this.host.admit(this);
    if (authorizing === undefined) {
      this.#join();
      return this.#onSubscribed(request);
    }
    const held = [request];
    this.#phase = { kind: "authorizing", held, bytes: 0 };
    authorizing.then(() => this.#joinLate(), (error) => this.#refuse(error));
  }

  #join(): void {
    const group = this.host.clientGroupOf(this.#subscriber!);
    this.host.joinGroup(this, group);
    const { userAgentName } = this.#subscriber!.xdsNode;
    this.state.profile = {
      removalPatienceMs: group.form === "grpc" ? REMOVAL_PATIENCE_MS : 0,
      retriesNacked: true,
      ...userAgentName.startsWith(GRPC_GO) ? { interimRoutesOf } : {},
    };
    this.#phase = { kind: "joined", group };
    this.host.joined(this);
  }

  #joinLate(): void {
    if (this.#phase.kind !== "authorizing") return;
    const { held, bytes } = this.#phase;
    this.#beganMs = this.host.timers.now();
    try {
      this.#join();
      for (const request of held) this.#onRequest(request);
      this.#countKept();
    } catch (error) {
      return this.#refuse(error);
    }
    this.call.consumed(bytes);
  }

  #refuse(error: unknown): void {
    if (error instanceof GrpcError) {
      return this.end(error.status);
    }
    reportInternalError("stream", error);
    this.end({ code: StatusCode.INTERNAL, message: INTERNAL_ERROR });
  }

  #onSubscribed(request: DiscoveryRequest): void {
    const { metrics, timers } = this.host;
    const nowMs = timers.now();
    const isAnswer = this.state.onRequest(request, nowMs);
    const kind = this.form.kind ?? kindOfUrl(request.typeUrl);
    metrics.requested(kind, this, request);
    if (kind === undefined) this.#noteUnserved(request.typeUrl);
    else if (isAnswer && request.errorDetail !== undefined) {
      this.#newSinceMs = undefined;
      const { message, code } = request.errorDetail;
      metrics.nacked(this, kind, message, code);
    }
    this.#flush();
    if (this.state.isOpen || this.#newSinceMs === undefined) return;
    const tookMs = nowMs - this.#newSinceMs;
    metrics.histograms.convergence_seconds.observe(tookMs / 1_000);
    this.#newSinceMs = undefined;
  }

  #noteUnserved(typeUrl: string): void {
    if (this.#hasReportedUnserved) return;
    this.#hasReportedUnserved = true;
    this.host.metrics.unserved(this, typeUrl);
  }

  /** @returns Whether nothing is left for the next slice. */
  #flush(): boolean {
    const { timers, metrics } = this.host;
    const { call, state, form } = this;
    while (call.keptBytes === 0) {
      const nowMs = timers.now();
      if (nowMs >= this.#beganMs + SLICE_MS) {
        this.host.requeue(this);
        return false;
      }
      const out = state.next(nowMs);
      if (out === undefined) {
        this.#wakeSoon(nowMs);
        return true;
      }
      const { kind, body, nonce } = out;
      const bytes = encodeBody(form.mode, body);
      const head = encodeHead(form.mode, nonce, this.host.server);
      call.sendMessage(head, bytes);
      metrics.sent(kind, bytes.length);
      this.#unread.sent(call.keptBytes, timers.now());
    }
    return true;
  }

  /** A tick comes too late for what the callers of a client wait for. */
  #wakeSoon(nowMs: number): void {
    const { soonMs } = this.state;
    if (soonMs === Infinity || this.#waking !== undefined) return;
    this.#waking = this.host.timers.after(Math.max(1, soonMs - nowMs), () => {
      this.#waking = undefined;
      this.tick(this.host.timers.now());
    });
  }

  #leave(reason: string): void {
    if (this.#phase.kind === "over") return;
    const { group } = this;
    this.#waking?.cancel();
    this.#phase = { kind: "over" };
    this.#account.close();
    this.host.ended(this, reason, group);
  }
}
