/**
 * The callee's side of one call, on one stream.
 *
 * Layer: gRPC. `server.ts` has checked the request head and chosen the method;
 * from here on this class stands between the stream and the method's events. It
 * knows no particular method or message.
 *
 * Errors: a `GrpcError` that the method throws, when it is called or from one
 * of its events, ends the call with that status, and no event follows. Anything
 * else is a slip of ours: it ends the call with INTERNAL, and is reported.
 *
 * @module
 */

import { ErrorCode } from "../frames/wire_error.ts";
import type { HeaderField } from "../hpack/header_field.ts";
import type { ReceiveBudget } from "../streams/receive_budget.ts";
import type { Stream, StreamEvents, StreamReset } from "../streams/stream.ts";
import type { Timer, Timers } from "../sync/clock.ts";
import { INTERNAL_ERROR, reportFault } from "../sync/faults.ts";
import {
  CONTENT_TYPE,
  type MethodHandler,
  type ServerCall,
  type ServerCallEvents,
  TIMER_DELAY_MS_MAX,
} from "./call.ts";
import { appendMetadata, type Metadata } from "./metadata.ts";
import { OutgoingBody } from "./outgoing_body.ts";
import { GrpcError, type Status, StatusCode } from "./status.ts";
import { appendStatus } from "./status_codec.ts";

/** The content of the request head. */
export interface ServerCallHead {
  readonly path: string;
  readonly authority: string;
  readonly metadata: Metadata;
  /** From now; `Infinity` without a deadline. */
  readonly timeoutMs: number;
}

/** For a call that is over. */
export const NO_EVENTS: ServerCallEvents = {
  onBody() {},
  onHalfClose() {},
  onWritable() {},
  onCancel() {},
};

export class ServerCallStream implements ServerCall, StreamEvents {
  readonly path: string;
  readonly authority: string;
  readonly metadata: Metadata;
  readonly deadlineMs: number;

  readonly #body: OutgoingBody;
  readonly #timer: Timer | undefined;
  #events: ServerCallEvents = NO_EVENTS;
  /** `finishing`: `finish` was called and waits for kept bytes to leave. */
  #state: "open" | "finishing" | "over" = "open";
  #isHeadSent = false;
  #isHalfClosed = false;

  /** Calls `handler`; see the module description for what it may throw. */
  constructor(
    private readonly stream: Stream,
    head: ServerCallHead,
    timers: Timers,
    handler: MethodHandler,
  ) {
    this.path = head.path;
    this.authority = head.authority;
    this.metadata = head.metadata;
    this.deadlineMs = timers.now() + head.timeoutMs;
    this.#body = new OutgoingBody(stream);
    if (head.timeoutMs <= TIMER_DELAY_MS_MAX) {
      this.#timer = timers.after(head.timeoutMs, () => this.#onDeadline());
    }
    try {
      this.#events = handler(this);
    } catch (error) {
      this.#fail(error);
    }
  }

  get room(): number {
    return this.#state === "open" ? this.#body.room : 0;
  }

  get windowBytes(): number | undefined {
    return this.#body.windowBytes;
  }

  get keptBytes(): number {
    return this.#body.keptBytes;
  }

  sendMetadata(metadata: Metadata): void {
    if (this.#state !== "open") return;
    if (this.#isHeadSent) {
      throw new TypeError("Cannot send metadata: the response head has left");
    }
    this.#sendHead(metadata);
  }

  sendFrame(head: Uint8Array, body: Uint8Array): void {
    this.#prepareToSend();
    this.#body.sendFrame(head, body);
  }

  sendMessage(message: Uint8Array, shared?: Uint8Array): boolean {
    if (this.#state === "over") return false;
    this.#prepareToSend();
    return this.#body.sendMessage(message, shared);
  }

  awaitRoom(): void {
    // Kept bytes wait for room already, and room is 0 until they are gone.
    if (this.#state === "open" && this.#body.keptBytes === 0) {
      this.stream.awaitRoom();
    }
  }

  consumed(bytes: number): void {
    if (this.#state !== "over") this.stream.consumed(bytes);
  }

  divideBudget(): ReceiveBudget {
    return this.stream.divideBudget();
  }

  finish(status: Status, trailers?: Metadata): void {
    if (this.#state !== "open") return;
    this.#state = "finishing";
    this.#body.endWith(() => this.#sendStatus(status, trailers));
  }

  abort(status: Status): void {
    if (this.#state === "over") return;
    this.#body.drop();
    this.#sendStatus(status, undefined);
  }

  onHeaders(): never {
    throw new TypeError("The request head was read before this call was made");
  }

  onData(chunk: Uint8Array): void {
    if (this.#state !== "open") {
      // The method has answered and reads no more, but its answer is still on
      // the way: keep the credit flowing, or the peer might wait for it.
      this.consumed(chunk.length);
      return;
    }
    try {
      this.#events.onBody(chunk);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** gRPC requests have no trailers: they are ignored. */
  onTrailers(): void {}

  onEnd(): void {
    this.#isHalfClosed = true;
    this.#notify((events) => events.onHalfClose());
  }

  onWritable(): void {
    if (this.#state === "over" || !this.#body.resume()) return;
    this.#notify((events) => events.onWritable());
  }

  onReset(reset: StreamReset): void {
    this.#end({ lost: reset.by === "lost", message: reset.reason });
  }

  #prepareToSend(): void {
    if (this.#state !== "open") {
      throw new TypeError(`Cannot send on ${this.path}: the call is over`);
    }
    if (!this.#isHeadSent) this.#sendHead(undefined);
  }

  #sendHead(metadata: Metadata | undefined): void {
    this.stream.sendHeaders(headWith(metadata), false);
    this.#isHeadSent = true;
  }

  #sendStatus(status: Status, trailers: Metadata | undefined): void {
    const fields =
      this.#isHeadSent && trailers === undefined && isPlainOk(status)
        ? OK_TRAILERS
        : this.#statusFields(status, trailers);
    this.#stop();
    this.stream.sendHeaders(fields, true);
    // The caller may go on sending without end; RFC 9113 §8.1 lets a server
    // that has answered completely stop it, which frees the stream on both
    // ends.
    if (!this.#isHalfClosed) this.stream.reset(ErrorCode.NO_ERROR);
  }

  #statusFields(status: Status, trailers: Metadata | undefined): HeaderField[] {
    // Without a head this is "Trailers-Only": one section is both.
    const fields = this.#isHeadSent ? [] : responseHead();
    appendStatus(fields, status);
    appendMetadata(fields, trailers);
    return fields;
  }

  #onDeadline(): void {
    if (this.#state === "over") return;
    const message = "the deadline passed before the call was answered";
    if (this.#body.keptBytes > 0) {
      // The peer reads nothing, or too slowly: trailers would wait behind the
      // kept bytes, and without those they would cut a message in two.
      this.stream.reset(ErrorCode.CANCEL);
      this.#end({ lost: false, message });
      return;
    }
    this.#sendStatus(
      { code: StatusCode.DEADLINE_EXCEEDED, message },
      undefined,
    );
    this.#cancelled({ lost: false, message });
  }

  #notify(call: (events: ServerCallEvents) => void): void {
    if (this.#state !== "open") return;
    try {
      call(this.#events);
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (error instanceof GrpcError) {
      return this.finish(error.status);
    }
    reportFault("stream", error);
    const isWithinMessage = this.#body.keptBytes > 0;
    const wasOpen = this.#state === "open";
    if (isWithinMessage) this.stream.reset(ErrorCode.INTERNAL_ERROR);
    else this.abort({ code: StatusCode.INTERNAL, message: INTERNAL_ERROR });
    this.#stop();
    // It may hold what would outlive the call, and must be notified of the end.
    if (wasOpen) this.#cancelled({ lost: false, message: INTERNAL_ERROR });
  }

  #end(reason: CancelReason): void {
    const wasOpen = this.#state === "open";
    this.#stop();
    if (wasOpen) this.#cancelled(reason);
  }

  #cancelled(reason: CancelReason): void {
    try {
      this.#events.onCancel(reason);
    } catch (error) {
      reportFault("stream", error);
    }
  }

  #stop(): void {
    this.#state = "over";
    this.#timer?.cancel();
    this.#body.drop();
  }
}

type CancelReason = Parameters<ServerCallEvents["onCancel"]>[0];

/** Trailers of most calls, frozen so that their coding may be remembered. */
const OK_TRAILERS: readonly HeaderField[] = Object.freeze([
  { name: "grpc-status", value: "0" },
]);

function isPlainOk({ code, message }: Status): boolean {
  return code === StatusCode.OK && message === "";
}

/** Response heads by their metadata, when that is final. */
const HEADS = new WeakMap<Metadata, readonly HeaderField[]>();

function headWith(metadata: Metadata | undefined): readonly HeaderField[] {
  const known = metadata === undefined ? undefined : HEADS.get(metadata);
  if (known !== undefined) return known;
  const fields = responseHead();
  appendMetadata(fields, metadata);
  if (metadata?.isFrozen) HEADS.set(metadata, Object.freeze(fields));
  return fields;
}

/** The response head's own fields. */
export function responseHead(): HeaderField[] {
  return [
    { name: ":status", value: "200" },
    { name: "content-type", value: CONTENT_TYPE },
  ];
}
