/**
 * Finds the method that answers a request, and answers all other requests
 * itself.
 *
 * Layer: gRPC. Plug `accept` into `ConnectionEvents.onStream`. Reads request
 * heads and knows method names; the rest of a call is in `server_call.ts`.
 *
 * @module
 */

import { ErrorCode } from "../frames/wire_error.ts";
import {
  type HeaderField,
  ListMemo,
  SHARED_LISTS_MAX,
} from "../hpack/header_field.ts";
import type { Timers } from "../sync/clock.ts";
import type { Stream, StreamEvents } from "../streams/stream.ts";
import {
  isGrpcContentType,
  type MethodHandler,
  parseTimeout,
  type ServerCall,
} from "./call.ts";
import { ForeignRequest } from "./foreign_request.ts";
import {
  ACCEPTED_ENCODINGS,
  encodingOf,
  isAcceptedEncoding,
  OnlyMessage,
  unknownEncoding,
} from "./message_reader.ts";
import { decodeMetadata } from "./metadata.ts";
import {
  responseHead,
  type ServerCallHead,
  ServerCallStream,
} from "./server_call.ts";
import { GrpcError, type Status, StatusCode } from "./status.ts";
import { appendStatus, fieldValue } from "./status_codec.ts";
import { INTERNAL_ERROR, reportFault } from "../sync/faults.ts";

/** See {@linkcode GrpcRouter}. */
export interface GrpcRouterOptions {
  /** By path, such as `/ProxyService/Proxy`. */
  readonly methods: Readonly<Record<string, MethodHandler>>;
  /** For the callers' deadlines. */
  readonly timers: Timers;
  /**
   * Answers requests that are not gRPC (by content type). It gets the request
   * head here, not through `onHeaders`. Without it see `ForeignRequest`.
   */
  readonly fallback?: (
    stream: Stream,
    fields: readonly HeaderField[],
  ) => StreamEvents;
}

/** For a request whose head, with the method's name, has yet to come. */
interface RequestEvents extends StreamEvents {
  onHeaders(fields: readonly HeaderField[]): StreamEvents;
}

export class GrpcRouter {
  constructor(private readonly options: GrpcRouterOptions) {}

  /** Serves a stream that the peer opened; its head comes with `onHeaders`. */
  accept(stream: Stream): RequestEvents {
    return {
      onHeaders: (fields) => this.#route(stream, fields),
      onData: ignore,
      onTrailers: ignore,
      onEnd: ignore,
      onWritable: ignore,
      onReset: ignore,
    };
  }

  #route(stream: Stream, fields: readonly HeaderField[]): StreamEvents {
    const head = READ_HEADS.get(fields);
    const handler = head && this.#handlerOf(head.path);
    if (head === undefined || handler === undefined) {
      return this.#routeNew(stream, fields);
    }
    return new ServerCallStream(stream, head, this.options.timers, handler);
  }

  #handlerOf(path: string): MethodHandler | undefined {
    const { methods } = this.options;
    return Object.hasOwn(methods, path) ? methods[path] : undefined;
  }

  #routeNew(stream: Stream, fields: readonly HeaderField[]): StreamEvents {
    if (!isGrpcContentType(fieldValue(fields, "content-type"))) {
      const { fallback, timers } = this.options;
      return fallback?.(stream, fields) ??
        new ForeignRequest(stream, fields, timers);
    }
    const method = fieldValue(fields, ":method");
    if (method !== "POST") {
      return new RefusedStream(stream, {
        code: StatusCode.INTERNAL,
        message: `Cannot serve method ${method}: gRPC calls are POST requests`,
      }, { httpStatus: "405" });
    }
    const path = fieldValue(fields, ":path") ?? "";
    const handler = this.#handlerOf(path);
    if (handler === undefined) {
      return new RefusedStream(stream, {
        code: StatusCode.UNIMPLEMENTED,
        message: `unknown method ${path}`,
      });
    }
    let head: ServerCallHead;
    try {
      head = readHead(path, fields);
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error;
      return new RefusedStream(stream, error, {
        acceptEncoding: error.code === StatusCode.UNIMPLEMENTED,
      });
    }
    READ_HEADS.set(fields, head);
    return new ServerCallStream(stream, head, this.options.timers, handler);
  }
}

/**
 * Heads of calls that repeat, of all connections: where one is found, all that
 * `#routeNew` looks at was found in order.
 */
const READ_HEADS = new ListMemo<ServerCallHead>(SHARED_LISTS_MAX);

/** @throws {GrpcError} When the head cannot be read. */
function readHead(
  path: string,
  fields: readonly HeaderField[],
): ServerCallHead {
  const encoding = fieldValue(fields, "grpc-encoding") ?? "identity";
  if (!isAcceptedEncoding(encoding)) throw unknownEncoding(encoding);
  const timeout = fieldValue(fields, "grpc-timeout");
  const timeoutMs = timeout === undefined ? Infinity : parseTimeout(timeout);
  if (timeoutMs === undefined) {
    throw new GrpcError(
      StatusCode.INTERNAL,
      `Cannot read grpc-timeout ${
        JSON.stringify(timeout)
      }: wanted 1 to 8 digits and one of H, M, S, m, u, n`,
    );
  }
  const authority = fieldValue(fields, ":authority") ??
    fieldValue(fields, "host") ?? "";
  return { path, authority, metadata: decodeMetadata(fields), timeoutMs };
}

/** A request that ends before its head has no method. */
function ignore(): void {}

/** How a refusal differs from plain trailers. */
interface Refusal {
  readonly httpStatus?: "405";
  readonly acceptEncoding?: boolean;
}

/**
 * A request that is answered before it is read. Most have no body or a short
 * one; if bytes do come, the sender is stopped by RFC 9113 §8.1.
 */
class RefusedStream implements StreamEvents {
  constructor(
    private readonly stream: Stream,
    status: Status,
    refusal: Refusal = {},
  ) {
    const fields = refusal.httpStatus === undefined
      ? responseHead()
      : [{ name: ":status", value: refusal.httpStatus }];
    if (refusal.httpStatus === "405") {
      fields.push({ name: "allow", value: "POST" });
    }
    if (refusal.acceptEncoding === true) {
      fields.push({ name: "grpc-accept-encoding", value: ACCEPTED_ENCODINGS });
    }
    appendStatus(fields, status);
    stream.sendHeaders(fields, true);
  }

  onData(): void {
    this.stream.reset(ErrorCode.NO_ERROR);
  }

  onHeaders(): void {}
  onTrailers(): void {}
  onEnd(): void {}
  onWritable(): void {}
  onReset(): void {}
}

// Methods that answer one message with one message.

/** Limits of one method. */
export interface MethodLimits {
  /** Longest request accepted; 4 MiB unless given. */
  readonly messageBytesMax?: number;
}

/**
 * Makes a method of a function from request to answer.
 *
 * A `GrpcError` it rejects with becomes the call's status. Anything else is a
 * slip of ours: the caller gets INTERNAL without details, and it is reported.
 *
 * @param handler Called when the request is complete. When the caller goes away
 *   meanwhile, its answer is dropped.
 */
export function unaryMethod(
  handler: (request: Uint8Array, call: ServerCall) => Promise<Uint8Array>,
  limits: MethodLimits = {},
): MethodHandler {
  return (call) => {
    const only = new OnlyMessage("request", limits.messageBytesMax);
    only.expect(encodingOf(call.metadata));
    return {
      onBody(chunk) {
        only.push(chunk);
        call.consumed(chunk.length);
      },
      onHalfClose() {
        answer(handler, only.take(), call)
          .catch((error) => reportFault("stream", error));
      },
      onWritable() {},
      onCancel() {},
    };
  };
}

async function answer(
  handler: (request: Uint8Array, call: ServerCall) => Promise<Uint8Array>,
  request: Uint8Array,
  call: ServerCall,
): Promise<void> {
  let response: Uint8Array;
  try {
    response = await handler(request, call);
  } catch (error) {
    if (error instanceof GrpcError) {
      call.finish(error.status);
      return;
    }
    call.finish({ code: StatusCode.INTERNAL, message: INTERNAL_ERROR });
    return reportFault("stream", error);
  }
  call.sendMessage(response);
  call.finish({ code: StatusCode.OK, message: "" });
}
