/**
 * Connections to servers: TLS with a client certificate, through a proxy if the
 * environment names one; or plain.
 *
 * The layers are a socket to the server or the proxy, the proxy's tunnel, and
 * TLS; each takes a socket and gives one.
 *
 * @module
 */

import { type Code, tunnelCodeOf } from "../../proto/codes/codes.ts";
import { type ProxyEnvironment, proxyFor } from "./proxy_environment.ts";
import { connectToHost } from "./connect_host.ts";
import { LookupError } from "../names/resolver.ts";
import { isSlip, unawaited } from "../../platform/errors/internal_errors.ts";
import { atMost, withDeadline } from "../../platform/time/deadline.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { Stream } from "../stream/stream.ts";
import { codeOf, messageOf } from "../../platform/errors/error_code.ts";
import { connectToPath, tuneLink } from "../stream/socket_connect.ts";
import { tlsClient, type TlsClientOptions } from "../tls/tls_client.ts";
import { NO_MATERIAL, type TlsMaterial } from "../tls/trust/credentials.ts";
import type { TlsChoice } from "../libc/choices.ts";
import { openTunnel } from "./proxy_tunnel.ts";
import { Socket } from "../stream/socket.ts";

/** How long, and until when, to try. */
export interface ConnectLimits {
  /** For the whole: name, TCP, proxy and handshake. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** The system's unless given. */
  readonly timers?: Timers;
}

/** The destination and the deadline. */
export interface ServerConnectOptions extends ConnectLimits {
  readonly host: string;
  readonly port: number;
  /** The address of `host`, if it is resolved already. */
  readonly ip?: string | undefined;
}

/** The server, and our identity. */
export interface TlsConnectOptions extends ServerConnectOptions {
  /** `ca` verifies the server, exclusively; empty means the public CAs. */
  readonly credentials: TlsMaterial;
  /** In order of preference. */
  readonly alpn: readonly string[];
  /** Name the server's certificate must be for. Default: `host`. */
  readonly serverName?: string | undefined;
  /** Or for one of these. */
  readonly otherNames?: readonly string[] | undefined;
  readonly proxyEnv: ProxyEnvironment;
  /** Only this; default: the cheapest there is. */
  readonly tls?: TlsChoice;
}

/** A server that could not be reached at all (TLS never began). */
export class ConnectError extends Error {
  override readonly name = "ConnectError";

  /** The error of the proxy or the name's lookup, if there was one. */
  get tunnelCode(): Code {
    if (this.cause instanceof LookupError) return "TUN401";
    return tunnelCodeOf(this.cause) ?? "TUN401";
  }

  /**
   * The machine is there and refused at once, or has no such socket: as a rule,
   * the server is being started again. Another try costs hardly anything.
   */
  get isRefused(): boolean {
    return ["ECONNREFUSED", "ENOENT"].includes(codeOf(this.cause));
  }
}

/**
 * Connects and does the handshake.
 *
 * @throws {ConnectError | TlsHandshakeError} One sentence each.
 */
export function connectTls(options: TlsConnectOptions): Promise<Stream> {
  return inTime(
    nameOf(options),
    options,
    (signal) => secured(options, signal, {}),
  );
}

/**
 * Connects over plain TCP, past every proxy: to servers on this machine, or in a
 * network that is trusted.
 *
 * @throws {ConnectError} One sentence.
 */
export function connectPlain(options: ServerConnectOptions): Promise<Stream> {
  const { host, ip = host, port } = options;
  const name = nameOf(options);
  return inTime(name, options, (signal) => dial(ip, port, name, signal));
}

/**
 * Connects to a socket of this machine.
 *
 * @throws {ConnectError} One sentence.
 */
export function connectUnix(
  path: string,
  limits: ConnectLimits,
): Promise<Stream> {
  const name = `unix:${path}`;
  return inTime(
    name,
    limits,
    (signal) => named(connectToPath(path, signal), name, signal),
  );
}

/**
 * The certificates that a server shows, leaf first: nothing is verified, and
 * only the expected name is sent.
 *
 * @returns DER.
 * @throws {ConnectError | TlsHandshakeError} One sentence each.
 */
export function shownCertificates(
  options: Omit<TlsConnectOptions, "credentials">,
): Promise<readonly Uint8Array<ArrayBuffer>[]> {
  const whole = { ...options, credentials: NO_MATERIAL };
  return inTime(nameOf(whole), whole, async (signal) => {
    let chain: readonly Uint8Array<ArrayBuffer>[] = [];
    const socket = await secured(whole, signal, {
      isUnverified: true,
      shown: (shown) => chain = shown,
    });
    sayGoodbye(socket);
    return chain;
  });
}

async function secured(
  options: TlsConnectOptions,
  signal: AbortSignal,
  how: Pick<TlsClientOptions, "isUnverified" | "shown">,
): Promise<Stream> {
  const socket = await connectTcp(options, signal);
  tuneLink(socket);
  const { host, serverName = host, otherNames, credentials, alpn, tls } =
    options;
  return await tlsClient(socket, {
    ...how,
    credentials,
    serverName,
    otherNames,
    alpn,
    address: nameOf(options),
    signal,
    tls,
  });
}

/**
 * Ends in order: a server whose handshake is cut off in its last message would
 * wait for it.
 */
export function sayGoodbye(stream: Stream): void {
  const socket = new Socket(stream);
  const ending = async () => {
    await socket.closeWrite();
    const into = new Uint8Array(1024);
    while (await socket.read(into) !== null);
  };
  // Late errors of a connection that is over are ignored.
  const over = atMost(systemTimers, CLOSE_MS, ending().catch(() => {}))
    .then(() => socket.close());
  unawaited("handshake", over);
}

/** How long the other end may take to hang up. */
const CLOSE_MS = 1_000;

/** Runs `connect` until it ends, time is up, or its caller gives up. */
function inTime<Result>(
  name: string,
  { timeoutMs, signal, timers = systemTimers }: ConnectLimits,
  connect: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const failed = (reason: string) =>
    new ConnectError(`Cannot connect to ${name}: ${reason}`);
  return withDeadline({
    timers,
    timeoutMs,
    late: () => failed(`no answer within ${timeoutMs} ms`),
    signal,
    givenUp: () => failed("given up"),
  }, connect);
}

/** For people: the name, and the address if that tells more. */
function nameOf({ host, port, ip }: ServerConnectOptions): string {
  const name = hostPort(host, port);
  return ip === undefined || ip === host ? name : `${name} (${ip})`;
}

async function connectTcp(
  options: TlsConnectOptions,
  signal: AbortSignal,
): Promise<Stream> {
  const { host, ip = host, port } = options;
  const proxy = proxyFor(host, port, options.proxyEnv);
  if (proxy === undefined) {
    return await dial(ip, port, nameOf(options), signal);
  }
  const via = ` through proxy ${hostPort(proxy.host, proxy.port)}`;
  const proxyName = hostPort(proxy.host, proxy.port) +
    " (the proxy that HTTPS_PROXY names)";
  const socket = await dial(proxy.host, proxy.port, proxyName, signal);
  try {
    await openTunnel(socket, hostPort(host, port), proxy, signal);
  } catch (error) {
    if (error === signal.reason) throw error;
    throw new ConnectError(
      `Cannot connect to ${hostPort(host, port)}${via}: ` +
        messageOf(error),
      { cause: error },
    );
  }
  return socket;
}

const CONNECT_WORDS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ECONNREFUSED: "connection refused; is the server running there?",
    ENOENT: "there is no such socket; is the server running there?",
    EACCES: "permission denied",
    ENOTFOUND: "no such host; correct the name, or see `getent hosts NAME`",
    ETIMEDOUT: "connection timed out",
    EHOSTUNREACH: "no route to host; see `ip route get ADDRESS`",
    ENETUNREACH: "network is unreachable; see `ip route get ADDRESS`",
    EMFILE: "too many open files",
  }),
);

function dial(
  host: string,
  port: number,
  name: string,
  signal: AbortSignal,
): Promise<Stream> {
  const timers = systemTimers;
  return named(connectToHost(host, port, { timers, signal }), name, signal);
}

async function named(
  connecting: Promise<Stream>,
  name: string,
  signal: AbortSignal,
): Promise<Stream> {
  try {
    return await connecting;
  } catch (error) {
    signal.throwIfAborted();
    if (isSlip(error)) throw error;
    const code = error instanceof LookupError && error.fault === "unknown"
      ? "ENOTFOUND"
      : codeOf(error);
    const words = CONNECT_WORDS.get(code) ?? messageOf(error);
    throw new ConnectError(`Cannot connect to ${name}: ${words}`, {
      cause: error,
    });
  }
}
