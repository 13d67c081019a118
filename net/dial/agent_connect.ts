/**
 * An agent's connection to a server: TLS with a client certificate, through a
 * proxy where the environment names one.
 *
 * By OpenSSL where this machine has it, because it costs least. Else by the
 * platform's own TLS client where that is as safe as `node:tls`: the process
 * must trust no public CA (the client only *adds* ours to them, so anybody with
 * a certificate from any of those could pose as the server), and no proxy may be
 * in between. By `node:tls` everywhere else.
 *
 * @module
 */

import tls from "node:tls";
import { connect as connectNet, isIP, type Socket } from "node:net";
import {
  canConnectDenoTls,
  connectDenoTls,
  type DirectTarget,
} from "./deno_tls_connect.ts";
import { connectOpenssl } from "./openssl_connect.ts";
import { type ProxyEnvironment, proxyFor } from "./proxy_environment.ts";
import { lookupForNet } from "../names/net_lookup.ts";
import { hostPort } from "../stream/deno_socket.ts";
import { nodeTlsTransport } from "../tls/node/node_tls_transport.ts";
import { socketTransport } from "../stream/socket_transport.ts";
import { codeOf } from "../stream/byte_socket.ts";
import type { TlsMaterial } from "../tls/trust/credentials.ts";
import type { TlsChoice } from "../tls/openssl/tls_choice.ts";
import { clientHandshakeError } from "../tls/trust/tls_errors.ts";
import { openTunnel } from "./proxy_tunnel.ts";
import type { Transport } from "../stream/transport.ts";

/** Where to and as whom. */
export interface AgentConnectOptions {
  readonly host: string;
  readonly port: number;
  /** The address of `host` to dial, for who has resolved it already. */
  readonly ip?: string;
  /** `ca` verifies the server, exclusively; empty means the public CAs. */
  readonly credentials: TlsMaterial;
  /** By preference. */
  readonly alpn: readonly string[];
  /** Name the server's certificate must be for. Default: `host`. */
  readonly serverName?: string;
  readonly proxyEnv: ProxyEnvironment;
  /** For all of it: name, TCP, proxy and handshake. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** The process trusts no public CA; see `tls/given_authorities.ts`. */
  readonly trustsOnlyGiven?: boolean;
  /** Only this; default: the cheapest there is. */
  readonly tls?: TlsChoice;
}

/** A server that could not be reached at all (TLS never began). */
export class ConnectError extends Error {
  override readonly name = "ConnectError";

  /**
   * The machine is there and said at once that nothing listens: as a rule, the
   * server is being started again. Asking costs hardly anything.
   */
  get isRefused(): boolean {
    return codeOf(this.cause) === "ECONNREFUSED";
  }
}

/**
 * Connects and shakes hands.
 *
 * @param onConnected Gets the transport in the turn of the handshake and must
 *   call its `start` before returning: see `nodeTlsTransport`.
 * @throws {ConnectError | TlsHandshakeError} One sentence each.
 */
export function connectAgentTls<Result>(
  options: AgentConnectOptions,
  onConnected: (transport: Transport) => Result,
): Promise<Result> {
  return withDeadline(options, (signal) => {
    const attempt = connectDirectly(options, signal);
    if (attempt === undefined) {
      return connectTcp(options, signal)
        .then((raw) => doHandshake(raw, options, signal, onConnected));
    }
    return attempt.then(onConnected, (error) => {
      throw error === signal.reason
        ? error
        : connectionError(error, nameOf(options));
    });
  });
}

/** @returns `undefined`: only `node:tls` can. */
function connectDirectly(
  options: AgentConnectOptions,
  signal: AbortSignal,
): Promise<Transport> | undefined {
  const { host, port, proxyEnv, trustsOnlyGiven, tls } = options;
  if (proxyFor(host, port, proxyEnv) !== undefined) return undefined;
  const target = directTarget(options);
  const openssl = tls === "platform"
    ? undefined
    : connectOpenssl(target, signal);
  if (openssl !== undefined) {
    return openssl.then((socket) => socketTransport(socket));
  }
  return trustsOnlyGiven === true && canConnectDenoTls(target)
    ? connectDenoTls(target, signal)
    : undefined;
}

/**
 * The certificates that a server shows, leaf first, whoever it is: nothing is
 * verified, and nothing is said to it but the name it is asked for.
 *
 * @returns DER.
 * @throws {ConnectError | TlsHandshakeError} One sentence each.
 */
export function shownCertificates(
  options: Omit<AgentConnectOptions, "credentials">,
): Promise<readonly Uint8Array[]> {
  const nothing = { cert: "", key: "", ca: "" };
  const whole = { ...options, credentials: nothing };
  return withDeadline(whole, async (signal) => {
    const raw = await connectTcp(whole, signal);
    return await openTls(raw, whole, signal, false, (socket) => {
      const leaf = socket.getPeerCertificate(true) as ShownCertificate;
      sayGoodbye(socket);
      return chainOf(leaf);
    });
  });
}

/**
 * Ends in order: a server whose handshake is cut off in its last message would
 * wait for it.
 */
function sayGoodbye(socket: tls.TLSSocket): void {
  // Late errors of a connection that is over are nobody's.
  socket.on("error", () => {});
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), GOODBYE_MS);
  socket.once("close", () => clearTimeout(timer));
  socket.end();
}

/** How long the other end may take to hang up. */
const GOODBYE_MS = 1_000;

/** A certificate as `node:tls` shows it. */
interface ShownCertificate {
  readonly raw?: Uint8Array;
  readonly issuerCertificate?: ShownCertificate;
}

/** More than anybody needs. */
const CHAIN_MAX = 16;

function chainOf(leaf: ShownCertificate | null): Uint8Array[] {
  const chain: Uint8Array[] = [];
  let next = leaf ?? undefined;
  // The last one may name itself as its issuer.
  const seen = new Set<unknown>();
  while (next?.raw !== undefined && !seen.has(next)) {
    if (chain.length === CHAIN_MAX) break;
    seen.add(next);
    chain.push(next.raw);
    next = next.issuerCertificate;
  }
  return chain;
}

/** Runs `connect` until it ends, time is up, or its caller gives up. */
function withDeadline<Result>(
  options: AgentConnectOptions,
  connect: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { signal } = options;
  const controller = new AbortController();
  const giveUp = (reason: string) =>
    controller.abort(
      new ConnectError(`Cannot connect to ${nameOf(options)}: ${reason}`),
    );
  const onAbort = () => giveUp("given up");
  if (signal?.aborted) onAbort();
  signal?.addEventListener("abort", onAbort);
  const timer = setTimeout(
    () => giveUp(`no answer within ${options.timeoutMs} ms`),
    options.timeoutMs,
  );
  return connect(controller.signal).finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  });
}

/** For people: the name, and the address where that says more. */
function nameOf({ host, port, ip }: AgentConnectOptions): string {
  const name = hostPort(host, port);
  return ip === undefined || ip === host ? name : `${name} (${ip})`;
}

function directTarget(options: AgentConnectOptions): DirectTarget {
  const { host, ip = host, port, credentials, alpn, serverName } = options;
  return { host: ip, port, credentials, alpn, serverName: serverName ?? host };
}

/** Such a client makes both connections, so its errors are of both. */
function connectionError(error: unknown, address: string): Error {
  const words = CONNECT_WORDS.get(codeOf(error));
  if (words === undefined) return clientHandshakeError(error, address);
  const message = `Cannot connect to ${address}: ${words}`;
  return new ConnectError(message, { cause: error });
}

async function connectTcp(
  options: AgentConnectOptions,
  signal: AbortSignal,
): Promise<Socket> {
  const { host, ip = host, port } = options;
  const proxy = proxyFor(host, port, options.proxyEnv);
  if (proxy === undefined) {
    return await dial(ip, port, nameOf(options), signal);
  }
  const via = ` through proxy ${hostPort(proxy.host, proxy.port)}`;
  const proxyName = hostPort(proxy.host, proxy.port) + " (a proxy)";
  const raw = await dial(proxy.host, proxy.port, proxyName, signal);
  try {
    await openTunnel(raw, hostPort(host, port), proxy, signal);
  } catch (error) {
    raw.destroy();
    if (error === signal.reason) throw error;
    throw new ConnectError(
      `Cannot connect to ${hostPort(host, port)}${via}: ` +
        (error as Error).message,
      { cause: error },
    );
  }
  return raw;
}

const CONNECT_WORDS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ECONNREFUSED: "connection refused; is the server running there?",
    ENOTFOUND: "no such host",
    EAI_AGAIN: "no such host (the resolver failed)",
    ETIMEDOUT: "connection timed out",
    EHOSTUNREACH: "no route to host",
    ENETUNREACH: "network is unreachable",
    EMFILE: "too many open files",
  }),
);

function dial(
  host: string,
  port: number,
  name: string,
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const raw = connectNet({ host, port, noDelay: true, lookup: lookupForNet });
    const onAbort = () => {
      raw.destroy();
      reject(signal.reason);
    };
    signal.addEventListener("abort", onAbort);
    raw.once("connect", () => {
      signal.removeEventListener("abort", onAbort);
      raw.removeAllListeners("error");
      resolve(raw);
    });
    raw.on("error", (error) => {
      signal.removeEventListener("abort", onAbort);
      const words = CONNECT_WORDS.get(codeOf(error)) ?? error.message;
      reject(
        new ConnectError(`Cannot connect to ${name}: ${words}`, {
          cause: error,
        }),
      );
    });
  });
}

function doHandshake<Result>(
  raw: Socket,
  options: AgentConnectOptions,
  signal: AbortSignal,
  onConnected: (transport: Transport) => Result,
): Promise<Result> {
  return openTls(
    raw,
    options,
    signal,
    true,
    (socket) => onConnected(nodeTlsTransport(socket)),
  );
}

/**
 * @param isVerified False: whoever answers is taken, to be looked at.
 * @param use Called in the turn of the handshake.
 */
function openTls<Result>(
  raw: Socket,
  options: AgentConnectOptions,
  signal: AbortSignal,
  isVerified: boolean,
  use: (socket: tls.TLSSocket) => Result,
): Promise<Result> {
  const { cert, key, ca } = options.credentials;
  const address = nameOf(options);
  return new Promise((resolve, reject) => {
    const serverName = options.serverName ?? options.host;
    const socket = tls.connect({
      socket: raw,
      // Verified in either form; only names may be sent (RFC 6066 §3).
      host: serverName,
      ...(isIP(serverName) === 0 ? { servername: serverName } : {}),
      ...(cert === "" ? {} : { cert, key }),
      ...(ca === "" ? {} : { ca: [ca] }),
      // Where the public authorities are forgotten, the platform refuses every
      // server unless it is given a list, even if nobody is to be verified.
      ...(isVerified ? {} : { ca: [] }),
      rejectUnauthorized: isVerified,
      ALPNProtocols: [...options.alpn],
      minVersion: "TLSv1.2",
      allowHalfOpen: true,
    } as tls.ConnectionOptions);
    const fail = (error: Error) => {
      signal.removeEventListener("abort", onAbort);
      socket.destroy();
      raw.destroy();
      reject(error);
    };
    const onAbort = () => fail(signal.reason);
    const onError = (error: Error) =>
      fail(clientHandshakeError(error, address));
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort);
    socket.on("error", onError);
    socket.once("secureConnect", () => {
      signal.removeEventListener("abort", onAbort);
      socket.off("error", onError);
      try {
        resolve(use(socket));
      } catch (error) {
        fail(error as Error); // Such as a certificate that cannot be read.
      }
    });
  });
}
