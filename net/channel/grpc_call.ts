/**
 * Unary gRPC calls over a connection of their own: TLS, HTTP/2 on our engine,
 * request and answer, end. For calls that are rare.
 *
 * @module
 */

import { inSpan } from "../../platform/tracing/tracing.ts";
import { Metadata } from "../../proto/grpc/metadata.ts";
import {
  formatTraceparent,
  type TraceContext,
  TRACEPARENT_FIELD,
} from "../../proto/peer/trace_context.ts";
import { unaryCall } from "../../proto/grpc/client.ts";
import { GrpcError, StatusCode, statusName } from "../../proto/grpc/status.ts";
import { connectTls, type TlsConnectOptions } from "../dial/server_connect.ts";
import { openClientConnection } from "../http2/client_connection.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";

/** The server to call. */
export interface CallerOptions {
  /** The server, and our identity; the caller does not choose ALPN. */
  readonly connect: Omit<TlsConnectOptions, "alpn">;
  /** For each answer. */
  readonly timeoutMs: number;
  /** Longest answer accepted. */
  readonly messageBytesMax: number;
}

/**
 * Makes one call.
 *
 * @param path Such as `/tunnel.v1.Identity/Join`.
 * @throws {GrpcError} What the server answered, UNAVAILABLE when the connection
 *   ended first, or DEADLINE_EXCEEDED; always with a sentence.
 */
export type UnaryCaller = (
  path: string,
  request: Uint8Array,
) => Promise<Uint8Array>;

/**
 * Connects, lets `use` make calls, one after the other, and closes in order.
 *
 * @throws {ConnectError | TlsHandshakeError} When there was no connection; else
 *   what `use` throws.
 */
export async function withCaller<Result>(
  options: CallerOptions,
  use: (call: UnaryCaller) => Promise<Result>,
): Promise<Result> {
  const { connect, timeoutMs, messageBytesMax } = options;
  const alpn = ["h2"];
  const stream = await connectTls({ ...connect, alpn });
  const timers = systemTimers;
  const connection = openClientConnection(stream, { timers });
  const traced: UnaryCaller = (path, request) =>
    inSpan(path, { kind: "client" }, (trace) => call(path, request, trace));
  const call = async (
    path: string,
    request: Uint8Array,
    trace: TraceContext | undefined,
  ) => {
    try {
      return await unaryCall(connection, {
        path,
        request,
        metadata: trace && traceMetadata(trace),
        authority: connect.serverName ?? connect.host,
        scheme: "https",
        timers,
        timeoutMs,
        messageBytesMax,
      });
    } catch (error) {
      throw error instanceof GrpcError ? inWords(error) : error;
    }
  };
  try {
    return await use(traced);
  } finally {
    connection.shutdown("the calls are over");
  }
}

function traceMetadata(trace: TraceContext): Metadata {
  return new Metadata({ [TRACEPARENT_FIELD]: formatTraceparent(trace) });
}

/** A status without a message is no sentence. */
function inWords(error: GrpcError): GrpcError {
  const { code, message } = error;
  if (message !== "") return error;
  return new GrpcError(
    code,
    code === StatusCode.UNIMPLEMENTED
      ? "the server does not know this call"
      : `the server answered ${statusName(code)} without a reason`,
  );
}
