/**
 * Connects to a server's frontend: a unix socket, or TCP with TLS and a
 * certificate of ours.
 *
 * @module
 */

import { connectToHost } from "../net/dial/connect_host.ts";
import { withDeadline } from "../platform/time/deadline.ts";
import { hostPort } from "../proto/peer/host_port.ts";
import { codeOf } from "../platform/errors/error_code.ts";
import type { Stream } from "../net/stream/stream.ts";
import { connectToPath } from "../net/stream/socket_connect.ts";
import { tlsClient } from "../net/tls/tls_client.ts";
import { Credentials } from "../net/tls/trust/credentials.ts";
import type { Timers } from "../proto/sync/clock.ts";
import { TunnelDialError } from "./dial_error.ts";
import {
  describeFrontend,
  type FrontendAddress,
  type NodeRoute,
} from "./tunnel_route.ts";
import type { Upstream } from "../net/channel/upstream.ts";
import { tlsUpstream } from "../net/channel/server_upstream.ts";

/** For the whole: name, TCP and handshake. */
export const FRONTEND_CONNECT_TIMEOUT_MS = 10_000;

/** How long, and until when, to try. */
interface FrontendConnectOptions {
  readonly timers: Timers;
  /** Gives up; its reason is thrown. */
  readonly signal?: AbortSignal;
}

type TcpAddress = Extract<FrontendAddress, { kind: "tcp" }>;

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
  { timers, signal }: FrontendConnectOptions,
): Promise<Stream> {
  const timeoutMs = FRONTEND_CONNECT_TIMEOUT_MS;
  const late = () => new Error(`no answer within ${timeoutMs} ms`);
  try {
    return await withDeadline(
      { timers, timeoutMs, late, signal },
      (signal) =>
        address.kind === "unix"
          ? connectToPath(address.path, signal)
          : connectTls(address, ALPN[protocol], timers, signal),
    );
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw asDialError(error, describeFrontend(address));
  }
}

async function connectTls(
  { host, port, tls }: TcpAddress,
  alpn: readonly string[],
  timers: Timers,
  signal: AbortSignal,
): Promise<Stream> {
  // Read each time, so that renewed files are used without a word.
  const credentials = Credentials.load({
    ca: tls.caFile,
    cert: tls.certFile,
    key: tls.keyFile,
  }).current;
  const socket = await connectToHost(host, port, { timers, signal });
  return await tlsClient(socket, {
    credentials,
    serverName: tls.serverName ?? host,
    alpn,
    address: hostPort(host, port),
    signal,
  });
}

const WORDS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ECONNREFUSED: "connection refused; is the server running there?",
    ENOENT: "there is no such socket; is the server running there?",
    EACCES: "permission denied",
    ETIMEDOUT: "connection timed out",
    EHOSTUNREACH: "no route to host",
    ENETUNREACH: "network is unreachable",
    EMFILE: "too many open files",
  }),
);

function asDialError(error: unknown, address: string): unknown {
  // Errors in our own code are passed on unchanged; a path that is too long is
  // not one of them.
  if (error instanceof TypeError && codeOf(error) === "") return error;
  if (!(error instanceof Error)) return error;
  // Those of TLS and of credentials are whole sentences already.
  const sentence = error.message.startsWith("Cannot ")
    ? error.message
    : `Cannot connect to ${address}: ${
      WORDS.get(codeOf(error)) ?? error.message
    }`;
  return new TunnelDialError("streamsetup", sentence, error);
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
