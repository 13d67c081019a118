/**
 * Our gRPC layer as a client, with promises for the convenience of tests.
 *
 * @module
 */

import { openClientConnection } from "../../../net/http2/client_connection.ts";
import { denoStream } from "../../../net/stream/platform_stream.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import type { ClientCall } from "../../../proto/grpc/call.ts";
import { type CallOptions, startCall } from "../../../proto/grpc/client.ts";
import {
  encodingOf,
  MessageReader,
} from "../../../proto/grpc/message_reader.ts";
import { Metadata } from "../../../proto/grpc/metadata.ts";
import { GrpcError, type Status } from "../../../proto/grpc/status.ts";
import type { Connection } from "../../../proto/streams/connection.ts";

const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

/** A connection to a test server and what happened to it. */
export class OurClient {
  readonly connection: Connection;
  readonly closed: Promise<void>;
  isGoingAway = false;

  private constructor(readonly authority: string, socket: Deno.TcpConn) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.connection = openClientConnection(denoStream(socket), {
      timers: systemTimers,
      events: {
        onGoaway: () => this.isGoingAway = true,
        onClosed: () => resolve(),
      },
    });
  }

  static async connect(port: number): Promise<OurClient> {
    const socket = await Deno.connect({ hostname: "127.0.0.1", port });
    return new OurClient(`127.0.0.1:${port}`, socket);
  }

  start(method: string, options: Partial<CallOptions> = {}): TestCall {
    return new TestCall(this.connection, {
      path: `/interop.Echo/${method}`,
      authority: this.authority,
      timers: systemTimers,
      ...options,
    });
  }

  /** Sends one message and waits for the one that comes back. */
  async unary(
    method: string,
    request: Uint8Array,
    options?: Partial<CallOptions>,
  ): Promise<{ answer: Uint8Array; call: TestCall }> {
    const call = this.start(method, options);
    await call.send(request);
    call.end();
    const answer = await call.receive();
    await call.finished();
    return { answer, call };
  }
}

/** One call as promises: messages in order, then the status. */
export class TestCall {
  head: Metadata | undefined;
  trailers: Metadata | undefined;
  readonly #call: ClientCall;
  readonly #arrived: Uint8Array[] = [];
  #status: Status | undefined;
  #reader: MessageReader | undefined;
  #wake = () => {};
  #writable = () => {};

  constructor(connection: Connection, options: CallOptions) {
    this.#call = startCall(connection, options, {
      onMetadata: (metadata) => {
        this.head = metadata;
        this.#reader = new MessageReader({
          messageBytesMax: MESSAGE_BYTES_MAX,
          encoding: encodingOf(metadata),
          onMessage: (message) => this.#arrived.push(message),
        });
      },
      onBody: (chunk) => {
        this.#reader?.push(chunk);
        this.#call.consumed(chunk.length);
        this.#wake();
      },
      onWritable: () => this.#writable(),
      onStatus: (status, trailers) => {
        this.#status = status;
        this.trailers = trailers;
        this.#wake();
        this.#writable();
      },
    });
  }

  /** Sends a message; resolves when it has left or never will. */
  async send(message: Uint8Array): Promise<void> {
    if (this.#status !== undefined || this.#call.sendMessage(message)) return;
    if (this.#status !== undefined) return;
    await new Promise<void>((resolve) => this.#writable = resolve);
  }

  end(): void {
    this.#call.halfClose();
  }

  cancel(): void {
    this.#call.cancel();
  }

  /** @throws {GrpcError} When the call ends before another message. */
  async receive(): Promise<Uint8Array> {
    while (this.#arrived.length === 0 && this.#status === undefined) {
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    const message = this.#arrived.shift();
    if (message !== undefined) return message;
    throw new GrpcError(this.#status!.code, this.#status!.message);
  }

  /** @throws {GrpcError} When the call ends with an error or one more message. */
  async finished(): Promise<void> {
    const error = await this.failure();
    if (error.code !== 0) throw error;
  }

  /** The status in which the call ends, without another message. */
  async failure(): Promise<GrpcError> {
    try {
      await this.receive();
    } catch (error) {
      if (error instanceof GrpcError) return error;
      throw error;
    }
    throw new Error("Cannot end the call: there was one more message");
  }
}
