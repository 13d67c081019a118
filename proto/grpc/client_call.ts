/**
 * The caller's side of one call, on one stream.
 *
 * Layer: gRPC. Stands between a stream and the caller's events: separates a
 * real answer from a proxy's error page, finds the status wherever it is
 * (trailers, a head that is all there is, a reset, a passed deadline) and
 * reports it once.
 *
 * Errors: a `GrpcError` that the caller's `onBody` throws gives the call up and
 * comes back as its status. Anything else is a bug and is thrown on.
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
  type ClientCall,
  type ClientCallEvents,
  isGrpcContentType,
  TIMER_DELAY_MS_MAX,
} from "./call.ts";
import { encodingOf, isAcceptedEncoding } from "./message_reader.ts";
import { decodeMetadata, Metadata } from "./metadata.ts";
import { OutgoingBody } from "./outgoing_body.ts";
import {
  codeOfHttpStatus,
  GrpcError,
  type Status,
  StatusCode,
  statusOfReset,
} from "./status.ts";
import { fieldValue, readStatus } from "./status_codec.ts";

/** When the caller stops waiting. */
interface CallDeadline {
  readonly timeoutMs: number;
  readonly timers: Timers;
}

export class ClientCallStream implements ClientCall, StreamEvents {
  readonly #stream: Stream;
  readonly #body: OutgoingBody;
  readonly #deadlineMs: number;
  readonly #timer: Timer | undefined;
  #isOver = false;
  /** `closing`: `halfClose` was called and waits for kept bytes to leave. */
  #sending: "open" | "closing" | "closed" = "open";
  /** A head with a status in it: all there is, unless a body follows. */
  #heldHead: readonly HeaderField[] | undefined;
  #trailers: readonly HeaderField[] | undefined;

  /** @param open Opens the stream with the events it is given. */
  constructor(
    open: (events: StreamEvents) => Stream,
    private readonly events: ClientCallEvents,
    private readonly deadline: CallDeadline | undefined,
  ) {
    this.#deadlineMs = deadline === undefined
      ? Infinity
      : deadline.timers.now() + deadline.timeoutMs;
    this.#stream = open(this);
    this.#body = new OutgoingBody(this.#stream);
    if (deadline !== undefined && deadline.timeoutMs <= TIMER_DELAY_MS_MAX) {
      this.#timer = deadline.timers.after(
        deadline.timeoutMs,
        () => this.#giveUp(this.#deadlineStatus()),
      );
    }
  }

  get room(): number {
    return this.#canSend ? this.#body.room : 0;
  }

  get windowBytes(): number | undefined {
    return this.#body.windowBytes;
  }

  get keptBytes(): number {
    return this.#body.keptBytes;
  }

  sendFrame(head: Uint8Array, body: Uint8Array): void {
    this.#assertOpen();
    this.#body.sendFrame(head, body);
  }

  sendMessage(message: Uint8Array, shared?: Uint8Array): boolean {
    if (this.#isOver) return false;
    this.#assertOpen();
    return this.#body.sendMessage(message, shared);
  }

  awaitRoom(): void {
    // Kept bytes wait for room already, and room is 0 until they are gone.
    if (this.#canSend && this.#body.keptBytes === 0) this.#stream.awaitRoom();
  }

  consumed(bytes: number): void {
    if (!this.#isOver) this.#stream.consumed(bytes);
  }

  divideBudget(): ReceiveBudget {
    return this.#stream.divideBudget();
  }

  halfClose(): void {
    if (!this.#canSend) return;
    this.#sending = "closing";
    this.#body.endWith(() => {
      this.#sending = "closed";
      this.#stream.end();
    });
  }

  cancel(): void {
    if (this.#isOver) return;
    this.#stop();
    this.#stream.reset(ErrorCode.CANCEL);
  }

  onHeaders(fields: readonly HeaderField[]): void {
    if (this.#isOver) return;
    const problem = problemOfHead(fields);
    if (problem !== undefined) return this.#giveUp(problem);
    if (fieldValue(fields, "grpc-status") !== undefined) {
      this.#heldHead = fields;
      return;
    }
    this.#deliverHead(fields);
  }

  onData(chunk: Uint8Array): void {
    if (this.#heldHead !== undefined) this.#releaseHead();
    if (this.#isOver) return;
    try {
      this.events.onBody(chunk);
    } catch (error) {
      this.#giveUpFor(error);
    }
  }

  onTrailers(fields: readonly HeaderField[]): void {
    if (this.#heldHead !== undefined) this.#releaseHead();
    this.#trailers = fields;
  }

  onEnd(): void {
    if (this.#isOver) return;
    const fields = this.#trailers ?? this.#heldHead;
    if (fields === undefined) {
      return this.#giveUp({
        code: StatusCode.INTERNAL,
        message: "Cannot tell how the call ended: the peer sent no trailers",
      });
    }
    const status = readStatus(fields);
    if (status === undefined) {
      return this.#giveUp({
        code: StatusCode.UNKNOWN,
        message: "Cannot tell how the call ended: no grpc-status in trailers",
      });
    }
    let trailers: Metadata;
    try {
      trailers = decodeMetadata(fields);
    } catch (error) {
      return this.#giveUpFor(error);
    }
    const isSendingClosed = this.#sending === "closed";
    this.#stop();
    // The answer is complete: the rest of the request is not needed.
    if (!isSendingClosed) this.#stream.reset(ErrorCode.NO_ERROR);
    this.events.onStatus(status, trailers, false);
  }

  onWritable(): void {
    if (this.#isOver || !this.#body.resume()) return;
    if (this.#sending === "open") this.events.onWritable();
  }

  onReset(reset: StreamReset): void {
    if (this.#isOver) return;
    const isLate = this.deadline !== undefined && reset.by === "peer" &&
      reset.code === ErrorCode.CANCEL &&
      this.deadline.timers.now() >= this.#deadlineMs;
    // The callee's timer fired a moment before ours.
    const status = isLate ? this.#deadlineStatus() : statusOfReset(reset);
    this.#stop();
    this.events.onStatus(status, new Metadata(), true);
  }

  get #canSend(): boolean {
    return !this.#isOver && this.#sending === "open";
  }

  #assertOpen(): void {
    if (this.#canSend) return;
    throw new TypeError("Cannot send: the call was half-closed or is over");
  }

  #deliverHead(fields: readonly HeaderField[]): void {
    let metadata: Metadata;
    try {
      metadata = decodeMetadata(fields);
    } catch (error) {
      return this.#giveUpFor(error);
    }
    const encoding = encodingOf(metadata);
    if (!isAcceptedEncoding(encoding)) {
      const quoted = JSON.stringify(encoding);
      return this.#giveUp({
        code: StatusCode.INTERNAL,
        message: `Cannot read the answer: its grpc-encoding is ${quoted}`,
      });
    }
    this.events.onMetadata(metadata);
  }

  #releaseHead(): void {
    const fields = this.#heldHead!;
    this.#heldHead = undefined;
    this.#deliverHead(fields);
  }

  #deadlineStatus(): Status {
    const waited = `${this.deadline?.timeoutMs} ms`;
    return {
      code: StatusCode.DEADLINE_EXCEEDED,
      message: `no answer within the deadline of ${waited}`,
    };
  }

  #giveUpFor(error: unknown): void {
    if (error instanceof GrpcError) {
      return this.#giveUp({ code: error.code, message: error.message });
    }
    reportFault("stream", error);
    this.#giveUp({ code: StatusCode.INTERNAL, message: INTERNAL_ERROR });
  }

  #giveUp(status: Status): void {
    if (this.#isOver) return;
    this.cancel();
    this.events.onStatus(status, new Metadata(), true);
  }

  #stop(): void {
    this.#isOver = true;
    this.#timer?.cancel();
    this.#body.drop();
  }
}

/** The fault of a response head; `undefined` when it is gRPC's. */
function problemOfHead(fields: readonly HeaderField[]): Status | undefined {
  const httpStatus = fieldValue(fields, ":status") ?? "none";
  const contentType = fieldValue(fields, "content-type");
  const isGrpc = isGrpcContentType(contentType);
  const hasStatus = fieldValue(fields, "grpc-status") !== undefined;
  // A status without a content type is some servers' trailers-only.
  if (hasStatus && (isGrpc || contentType === undefined)) return undefined;
  if (isGrpc && httpStatus === "200") return undefined;
  return {
    code: codeOfHttpStatus(Number(httpStatus)),
    message: `Cannot read the answer: it has HTTP status ${httpStatus} and ` +
      `content-type ${contentType ?? "none"}, wanted 200 and application/grpc`,
  };
}
