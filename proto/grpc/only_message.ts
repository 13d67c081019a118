/**
 * The one message of a direction that has exactly one.
 *
 * Layer: gRPC. Both ends of a unary call read this way, and the request of a
 * call whose answers are a stream.
 *
 * @module
 */

import { MessageReader } from "./message_reader.ts";
import { GrpcError, StatusCode } from "./status.ts";

export class OnlyMessage {
  readonly #bytesMax: number | undefined;
  #reader: MessageReader | undefined;
  #message: Uint8Array | undefined;

  /** @param messageBytesMax Longest message accepted; 4 MiB when `undefined`. */
  constructor(
    private readonly what: "request" | "response",
    messageBytesMax?: number,
  ) {
    this.#bytesMax = messageBytesMax;
  }

  /** Sets the `grpc-encoding` of the message. Call once, first. */
  expect(encoding: string): void {
    this.#reader = new MessageReader({
      messageBytesMax: this.#bytesMax,
      encoding,
      onMessage: (message) => {
        if (this.#message !== undefined) throw this.#violation("more");
        this.#message = message;
      },
    });
  }

  /** @throws {GrpcError} As `MessageReader.push`, and for a second message. */
  push(chunk: Uint8Array): void {
    this.#reader?.push(chunk);
  }

  /**
   * The message, once the sender is done.
   *
   * @throws {GrpcError} When there was none or it was cut short.
   */
  take(): Uint8Array {
    this.#reader?.end();
    if (this.#message === undefined) throw this.#violation("none");
    return this.#message;
  }

  /** grpc/doc/statuscodes.md: a cardinality violation is UNIMPLEMENTED. */
  #violation(seen: "none" | "more"): GrpcError {
    return new GrpcError(
      StatusCode.UNIMPLEMENTED,
      `Cannot take the ${this.what}: there was ${seen}, wanted one message`,
    );
  }
}
