/**
 * A gRPC call as a server's method sees it, without a connection: tests say what
 * comes in and see what goes out.
 *
 * @module
 */

import { joinedBytes } from "../../../proto/bytes/byte_arrays.ts";
import type {
  MethodHandler,
  ServerCall,
  ServerCallEvents,
} from "../../../proto/grpc/call.ts";
import { frameMessage } from "../../../proto/grpc/message_reader.ts";
import { Metadata } from "../../../proto/grpc/metadata.ts";
import { GrpcError, type Status } from "../../../proto/grpc/status.ts";
import { ReceiveBudget } from "../../../proto/streams/receive_budget.ts";

/** See the module description. */
export class FakeServerCall implements ServerCall {
  readonly path = "/test";
  readonly authority = "test";
  readonly deadlineMs = Infinity;
  readonly room = 0;
  readonly metadata: Metadata;
  /** What was sent, whole messages. */
  readonly messages: Uint8Array[] = [];
  /** Called for each of them. */
  onSent: (message: Uint8Array) => void = () => {};
  /** False: the client takes nothing, and what is sent is kept. */
  isTaking = true;
  keptBytes = 0;
  consumedBytes = 0;
  /** How the method ended the call. */
  status: Status | undefined;
  wasAborted = false;
  #events: ServerCallEvents | undefined;

  constructor(fields: Readonly<Record<string, string>> = {}) {
    this.metadata = new Metadata(fields);
  }

  /** Calls the method. */
  begin(method: MethodHandler): void {
    this.#guard(() => {
      this.#events = method(this);
    });
  }

  /** A message of the client. */
  receive(message: Uint8Array): void {
    this.receiveBytes(frameMessage(message));
  }

  /** Bytes of messages, cut anywhere. */
  receiveBytes(bytes: Uint8Array): void {
    this.#guard(() => this.#events?.onBody(bytes));
  }

  /** The client takes what is kept. */
  take(): void {
    this.isTaking = true;
    this.keptBytes = 0;
    this.#guard(() => this.#events?.onWritable());
  }

  halfClose(): void {
    this.#guard(() => this.#events?.onHalfClose());
  }

  /** The client is gone. */
  cancel(): void {
    this.#events?.onCancel({ lost: true, message: "the connection was lost" });
    this.#events = undefined;
  }

  sendMessage(message: Uint8Array, shared = new Uint8Array(0)): boolean {
    if (this.status !== undefined) {
      throw new TypeError("Cannot send: the call is over");
    }
    const whole = joinedBytes([message, shared]);
    this.messages.push(whole);
    if (!this.isTaking) this.keptBytes += whole.length;
    this.onSent(whole);
    return this.isTaking;
  }

  consumed(bytes: number): void {
    this.consumedBytes += bytes;
  }

  divideBudget(): ReceiveBudget {
    return new ReceiveBudget();
  }

  finish(status: Status): void {
    this.status ??= status;
    this.#events = undefined;
  }

  abort(status: Status): void {
    this.wasAborted = true;
    this.finish(status);
  }

  sendFrame(): never {
    throw new TypeError("Frames are not for methods of whole messages");
  }

  sendMetadata(): void {}
  awaitRoom(): void {}

  /** What a method throws ends its call. */
  #guard(act: () => void): void {
    try {
      act();
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error;
      this.finish({ code: error.code, message: error.message });
    }
  }
}
