/**
 * Connects to a server's frontend: a unix socket, or TCP with TLS and a
 * certificate of ours.
 *
 * @module
 */

import {
  ConnectError,
  type ConnectLimits,
  connectTls,
  connectUnix,
} from "../net/dial/server_connect.ts";
import type { Stream } from "../net/stream/stream.ts";
import { Credentials, CredentialsError } from "../net/tls/trust/credentials.ts";
import { TlsHandshakeError } from "../net/tls/trust/tls_errors.ts";
import type { Timers } from "../proto/sync/clock.ts";
import { TunnelDialError } from "./dial_error.ts";
import type { FrontendAddress, NodeRoute } from "./tunnel_route.ts";
import type { Upstream } from "../net/channel/upstream.ts";
import { tlsUpstream } from "../net/channel/server_upstream.ts";

/** For the whole: name, TCP and handshake. */
export const FRONTEND_CONNECT_TIMEOUT_MS = 10_000;

/**
 * The protocol there, by its ALPN name: Go's gRPC servers refuse clients of
 * HTTP/2 without ALPN, and kube-apiserver calls HTTP/1.1 CONNECT without it.
 */
const ALPN: Readonly<Record<"http1" | "http2", readonly string[]>> = {
  http1: [],
  http2: ["h2"],
};

/** @throws {TunnelDialError} Reason `streamsetup`. */
export async function openFrontendStream(
  address: FrontendAddress,
  protocol: "http1" | "http2",
  tools: Pick<ConnectLimits, "signal"> & { readonly timers: Timers },
): Promise<Stream> {
  const limits = { ...tools, timeoutMs: FRONTEND_CONNECT_TIMEOUT_MS };
  try {
    if (address.kind === "unix") return await connectUnix(address.path, limits);
    const { host, port, tls } = address;
    return await connectTls({
      ...{ ...limits, host, port, proxyEnv: {} },
      serverName: tls.serverName,
      alpn: ALPN[protocol],
      // Read each time, so that renewed files are used without a word.
      credentials: Credentials.load({
        ca: tls.caFile,
        cert: tls.certFile,
        key: tls.keyFile,
      }).current,
    });
  } catch (error) {
    if (tools.signal?.aborted) throw tools.signal.reason;
    const isForeseen = error instanceof ConnectError ||
      error instanceof TlsHandshakeError || error instanceof CredentialsError;
    throw isForeseen
      ? new TunnelDialError("streamsetup", error.message, error)
      : error;
  }
}

// How calls get to a server of the tunnel: over its frontend, or over the port
// where agents call in.

/** To a frontend. */
export function frontendUpstream(
  address: FrontendAddress,
  timers: Timers,
): Upstream {
  return {
    authority: "localhost",
    scheme: address.kind === "tcp" ? "https" : "http",
    async connect(use, signal) {
      return use(
        await openFrontendStream(address, "http2", { timers, signal }),
      );
    },
  };
}

/** To the agent port, as a node. */
export function nodeUpstream(
  { addresses, files, identity, serverName, proxyEnv = {} }: NodeRoute,
): Upstream {
  return tlsUpstream({
    addresses,
    // Each time, so that renewed files are used without a word.
    credentials: () => identity?.current ?? Credentials.load(files).current,
    identity,
    serverName,
    proxyEnv,
  });
}
