/**
 * From a route to an encrypted connection to the kubelet: the dial that every
 * frontend makes, and TLS inside what it gives.
 *
 * @module
 */

import { MessageError } from "../../net/http1/refusal.ts";
import { ConduitStream } from "../../net/stream/conduit_stream.ts";
import type { Stream } from "../../net/stream/stream.ts";
import { tlsClient } from "../../net/tls/tls_client.ts";
import type { TlsMaterial } from "../../net/tls/trust/credentials.ts";
import { TlsHandshakeError } from "../../net/tls/trust/tls_errors.ts";
import { messageOf } from "../../platform/errors/error_code.ts";
import { withDeadline } from "../../platform/time/deadline.ts";
import { dialFailureStatus } from "../../policy/refusal.ts";
import type { Code } from "../../proto/codes/codes.ts";
import { abandon } from "../../proto/link/dial_handler.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { KubeletRoute } from "./kubelet_route.ts";
import type { Caller } from "../policy/caller.ts";
import type { Dialer } from "../routing/dialer.ts";

/** How long the handshake with a kubelet may take. */
export const KUBELET_HANDSHAKE_TIMEOUT_MS = 10_000;

/** What it takes. */
export interface KubeletDialOptions {
  readonly timers: Timers;
  readonly dial: Dialer["dial"];
  /** As whom, and whom to believe; asked for each connection. */
  credentials(): TlsMaterial;
  /** Kubelets' certificates are not looked at. */
  readonly isUnverified: boolean;
}

/**
 * @throws {KubeletError} When it does not come about.
 * @throws The reason of `signal`, when that gives it up.
 */
export async function dialKubelet(
  route: KubeletRoute,
  caller: Caller,
  signal: AbortSignal,
  options: KubeletDialOptions,
): Promise<Stream> {
  const { node, address } = route;
  const kubelet = `the kubelet of node ${node} (${address})`;
  try {
    const stream = await dialed(route, caller, signal, options);
    return await secured(stream, route, kubelet, signal, options);
  } catch (error) {
    signal.throwIfAborted();
    throw kubeletError(kubelet, error);
  }
}

function dialed(
  { node, address }: KubeletRoute,
  caller: Caller,
  signal: AbortSignal,
  { dial }: KubeletDialOptions,
): Promise<ConduitStream> {
  const { promise, resolve, reject } = Promise.withResolvers<ConduitStream>();
  const order = {
    target: { protocol: "tcp", address },
    node,
    caller,
    takeEarlyData: () => NO_BYTES,
  };
  const pending = dial(order, {
    connected: (conduit) => {
      if (signal.aborted) return abandon(conduit, "the caller has left");
      resolve(new ConduitStream(conduit, address));
    },
    failed: reject,
  });
  const onAbort = () => {
    pending.cancel();
    reject(signal.reason);
  };
  signal.addEventListener("abort", onAbort);
  return promise.finally(() => signal.removeEventListener("abort", onAbort));
}

async function secured(
  stream: Stream,
  { names }: KubeletRoute,
  kubelet: string,
  signal: AbortSignal,
  { timers, credentials, isUnverified }: KubeletDialOptions,
): Promise<Stream> {
  const [serverName = "", ...otherNames] = names;
  const timeoutMs = KUBELET_HANDSHAKE_TIMEOUT_MS;
  const late = () =>
    new TlsHandshakeError(
      "timeout",
      `no end of the TLS handshake within ${timeoutMs} ms`,
    );
  return await withDeadline(
    { timers, timeoutMs, late, signal },
    (signal) =>
      tlsClient(stream, {
        credentials: credentials(),
        serverName,
        otherNames,
        isUnverified,
        alpn: ["http/1.1"],
        address: kubelet,
        signal,
      }),
  );
}

const NO_BYTES: Uint8Array = new Uint8Array(0);

/** There is nobody left who could be told anything. */
export class CallerLeft extends Error {
  override readonly name = "CallerLeft";
}

/** A kubelet that could not be reached; `message` says which and why. */
class KubeletError extends Error {
  override readonly name = "KubeletError";
  readonly tunnelCode: Code = "TUN506";

  constructor(readonly status: number, message: string, cause: unknown) {
    super(message, { cause });
  }
}

/** A status line and a sentence. */
export interface KubeletRefusal {
  readonly status: number;
  readonly message: string;
}

/**
 * The error for a connection that did not come about.
 *
 * @param kubelet How to call it.
 * @throws What is our own fault.
 */
export function kubeletError(kubelet: string, error: unknown): KubeletError {
  const message = messageOf(error);
  const sentence = `Cannot reach ${kubelet}: ${message}`;
  if (error instanceof DialError) {
    // Upstream's 503 would invite clients to try again at once.
    const status = error.reason === "no-agent" ? 502 : dialFailureStatus(error);
    return new KubeletError(status, sentence, error);
  }
  if (error instanceof TlsHandshakeError) {
    const status = error.failure === "timeout" ? 504 : 502;
    return new KubeletError(status, sentence, error);
  }
  throw error;
}

/** Whether an agent could not be had, or could not connect. */
export function isDialFailure(error: unknown): boolean {
  return error instanceof KubeletError && error.cause instanceof DialError;
}

/**
 * What the caller is told; `undefined`: nothing, it is gone.
 *
 * @throws What is our own fault.
 */
export function refusalOf(error: unknown): KubeletRefusal | undefined {
  if (error instanceof CallerLeft) return undefined;
  if (error instanceof MessageError || error instanceof KubeletError) {
    const { status, message } = error;
    return { status, message };
  }
  // The kubelet refuses our certificate as late as in the first read.
  if (error instanceof TlsHandshakeError || isOfTheConnection(error)) {
    const { message } = error as Error;
    return {
      status: 502,
      message: `the connection to the kubelet broke: ${message}`,
    };
  }
  throw error;
}

/** Whether a socket failed for the world's reasons; the others are ours. */
function isOfTheConnection(error: unknown): boolean {
  return error instanceof Error && !(error instanceof TypeError) &&
    !(error instanceof RangeError);
}
