/**
 * Asks a connected endpoint whether it lives, over HTTP or gRPC, under TLS if
 * that is wanted.
 *
 * @module
 */

import { messageOf } from "../../../platform/errors/error_code.ts";
import {
  type HealthCheck,
  type HealthTls,
  WELL_STATUSES,
} from "../../catalog/model/model.ts";
import type { Target } from "../../catalog/snapshot.ts";
import { ResponseReader } from "../../../net/http1/head.ts";
import { openClientConnection } from "../../../net/http2/client_connection.ts";
import { ConduitStream } from "../../../net/stream/conduit_stream.ts";
import { hostPort } from "../../../proto/peer/host_port.ts";
import { Socket } from "../../../net/stream/socket.ts";
import type { Stream } from "../../../net/stream/stream.ts";
import { printable } from "../../../platform/text/printable.ts";
import { tlsClient } from "../../../net/tls/tls_client.ts";
import { NO_MATERIAL } from "../../../net/tls/trust/credentials.ts";
import { unaryCall } from "../../../proto/grpc/client.ts";
import {
  HEALTH_METHODS,
  HealthCheckRequest,
  HealthCheckResponse,
  ServingStatus,
} from "../../../proto/grpc/health_messages.ts";
import { GrpcError, statusName } from "../../../proto/grpc/status.ts";
import type { Timers } from "../../../proto/sync/clock.ts";
import type { Conduit } from "../../../proto/transfer/conduit.ts";

/** Reads the head of an answer; the body is not read. */
const READ_BYTES = 1_024;

/** A status of a few bytes, and what a newer one may add. */
const MESSAGE_BYTES_MAX = 1_024;

/** Limit on an endpoint's own words: they go to the log, and to a status. */
const WORDS_LENGTH_MAX = 200;

/** What an endpoint is asked. */
export type AskedHealth = Exclude<HealthCheck, { readonly kind: "tcp" }>;

/** A question's tools from its machine. */
export interface QuestionContext {
  readonly timers: Timers;
  /** Gives it up. */
  readonly signal: AbortSignal;
}

/**
 * Asks once, for as long as the check may take.
 *
 * @param conduit Is over when this settles, or ends by itself.
 * @returns What is wrong, if anything is.
 */
export async function askHealth(
  conduit: Conduit,
  how: AskedHealth,
  target: Target,
  { timers, signal }: QuestionContext,
): Promise<string | undefined> {
  const what = how.kind === "http" ? `GET ${how.path}` : "gRPC health check";
  const address = hostPort(target.address, target.port);
  const limit = new AbortController();
  let stream: Stream = new ConduitStream(conduit, address);
  const giveUp = () => {
    limit.abort();
    stream.reset();
  };
  const deadline = timers.after(how.timeoutMs, giveUp);
  signal.addEventListener("abort", giveUp);
  try {
    if (how.tls !== undefined) {
      stream = await dress(stream, how, target, how.tls, limit.signal);
    }
    return how.kind === "http"
      ? await askHttp(new Socket(stream), how, address)
      : await askGrpc(stream, how, address, timers);
  } catch (error) {
    stream.reset();
    if (limit.signal.aborted) {
      return `no answer to ${what} within ${how.timeoutMs} ms`;
    }
    return `${what} was not answered: ${messageOf(error)}`;
  } finally {
    deadline.cancel();
    signal.removeEventListener("abort", giveUp);
  }
}

/** Certificates of endpoints are rarely such as this machine trusts. */
function dress(
  stream: Stream,
  { kind, host }: AskedHealth,
  target: Target,
  { verify = false, serverName }: HealthTls,
  signal: AbortSignal,
): Promise<Stream> {
  const named = host === undefined ? target.address : hostIn(host);
  return tlsClient(stream, {
    credentials: NO_MATERIAL,
    serverName: serverName ?? named,
    isUnverified: !verify,
    alpn: [kind === "grpc" ? "h2" : "http/1.1"],
    address: stream.remoteAddress,
    signal,
  });
}

/** The host of `host`, `host:port` or `[ip6]:port`. */
function hostIn(text: string): string {
  return /^\[([^\]]*)\]/.exec(text)?.[1] ?? text.replace(/:\d*$/, "");
}

async function askHttp(
  socket: Socket,
  how: Extract<AskedHealth, { kind: "http" }>,
  address: string,
): Promise<string | undefined> {
  const { path, host = address } = how;
  await socket.writeAll(
    new TextEncoder().encode(
      `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n` +
        "User-Agent: tunnel-proxy\r\nConnection: close\r\n\r\n",
    ),
  );
  const status = await statusOf(socket);
  socket.reset();
  if (status === undefined) return `GET ${path} was not answered`;
  const { statuses = WELL_STATUSES } = how;
  const isWell = statuses.some(({ first, last }) =>
    status >= first && status <= last
  );
  return isWell ? undefined : `GET ${path} was answered ${status}`;
}

/**
 * @returns `undefined`: the answer is missing or incomplete. @throws
 *   {MessageError} When it is not HTTP.
 */
async function statusOf(socket: Socket): Promise<number | undefined> {
  const reader = new ResponseReader("the endpoint");
  const buffer = new Uint8Array(READ_BYTES);
  for (;;) {
    const count = await socket.read(buffer);
    if (count === null) return undefined;
    const read = reader.pushFinal(buffer.subarray(0, count));
    if (read !== undefined) return read.head.status;
  }
}

async function askGrpc(
  stream: Stream,
  { service, host, tls, timeoutMs }: Extract<AskedHealth, { kind: "grpc" }>,
  address: string,
  timers: Timers,
): Promise<string | undefined> {
  const connection = openClientConnection(stream, { timers });
  try {
    const answer = await unaryCall(connection, {
      path: HEALTH_METHODS.check,
      request: HealthCheckRequest.encode({ service }),
      authority: host ?? address,
      scheme: tls === undefined ? "http" : "https",
      timers,
      timeoutMs,
      messageBytesMax: MESSAGE_BYTES_MAX,
    });
    const { status } = HealthCheckResponse.decode(answer);
    if (status === ServingStatus.SERVING) return undefined;
    return `gRPC health check was answered ${nameOf(status)}`;
  } catch (error) {
    if (!(error instanceof GrpcError)) throw error;
    const said = printable(error.message, WORDS_LENGTH_MAX);
    const words = said === "" ? "" : `: ${said}`;
    return `gRPC health check was answered ${statusName(error.code)}${words}`;
  } finally {
    // Sends GOAWAY, and closes the socket when the other end has received it.
    connection.shutdown("the health check is done");
  }
}

function nameOf(status: number): string {
  const known = Object.entries(ServingStatus)
    .find(([, number]) => number === status);
  return known?.[0] ?? `status ${status}`;
}
