/**
 * From a route to an encrypted connection to the kubelet: the dial that every
 * frontend makes, and TLS inside what it gives.
 *
 * @module
 */

import { orAborted, withDeadline } from "../../platform/time/deadline.ts";
import { ConduitStream } from "../../net/stream/conduit_stream.ts";
import { tlsClient } from "../../net/tls/tls_client.ts";
import type { Stream } from "../../net/stream/stream.ts";
import type { TlsMaterial } from "../../net/tls/trust/credentials.ts";
import { TlsHandshakeError } from "../../net/tls/trust/tls_errors.ts";
import { abandon } from "../../proto/link/dial_handler.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import type { Dialer } from "../routing/dialer.ts";
import type { Caller } from "../policy/caller.ts";
import { kubeletError } from "./exchange_errors.ts";
import type { KubeletRoute } from "./kubelet_route.ts";

/** How long the handshake with a kubelet may take. */
export const KUBELET_HANDSHAKE_TIMEOUT_MS = 10_000;

/** What it takes. */
export interface KubeletDialOptions {
  readonly timers: Timers;
  readonly dial: Dialer["dial"];
  /** The client certificate and the trusted CA; read for each connection. */
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

async function dialed(
  { node, address }: KubeletRoute,
  caller: Caller,
  signal: AbortSignal,
  { dial }: KubeletDialOptions,
): Promise<ConduitStream> {
  const { promise, resolve, reject } = Promise.withResolvers<Conduit>();
  const target = { protocol: "tcp", address };
  const takeEarlyData = () => NO_BYTES;
  const pending = dial({ target, node, caller, takeEarlyData }, {
    connected: resolve,
    failed: reject,
  });
  signal.addEventListener("abort", () => pending.cancel());
  const late = (conduit: Conduit) => abandon(conduit, "the caller has left");
  return new ConduitStream(await orAborted(promise, signal, late), address);
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
