/**
 * The only place that opens listeners.
 *
 * Everything a process offers to the network is opened here, so this is where
 * to look for it, and where a listener handed over by another process (a
 * restart without a gap, socket activation) would come in: each function takes
 * an address and could as well take a descriptor that is bound to it.
 *
 * @module
 */

import tls from "node:tls";
import { acceptLoop } from "./accept_loop.ts";
import { watchAcceptQueue } from "./accept_watchdog.ts";
import { ListenError, listenError } from "./listen_error.ts";
import { Reopener } from "./reopen.ts";
import { hostPort } from "./sockets/deno_socket.ts";
import { nodeTlsTransport } from "./sockets/node_tls_transport.ts";
import { codeOf } from "./sockets/octet_socket.ts";
import { systemTimers } from "./system_timers.ts";
import {
  type ClientCertificateRule,
  refuseClient,
} from "./tls/client_certificate.ts";
import type { Credentials, TlsMaterial } from "./tls/credentials.ts";
import {
  serverHandshakeError,
  type TlsHandshakeError,
} from "./tls/tls_errors.ts";
import type { Transport } from "./transport.ts";

/** A listener that is open. */
export interface BoundListener {
  /** `host:port` as bound, or a path. */
  readonly address: string;
  /** The port that was bound, also when 0 was asked for; 0 for a path. */
  readonly port: number;
  /** Stops accepting. What was accepted goes on. */
  close(): void;
}

/** Where to listen. */
export interface ListenAddress {
  /** Empty means every address of the machine, IPv4 and IPv6. */
  readonly hostname: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

/** How accepted connections and trouble reach the owner. */
export interface ConnectionEvents<Conn> {
  onConnection(conn: Conn): void;
  /** One line for the log; the listener goes on. */
  onProblem(line: string): void;
}

/** How the agent port presents itself. */
export interface AgentPortOptions extends ListenAddress {
  /** With certificate and key; its CA verifies agents. */
  readonly credentials: Credentials;
  readonly clientCertificate: ClientCertificateRule;
  /** By preference. */
  readonly alpn: readonly string[];
  readonly minVersion: tls.SecureVersion;
  readonly handshakeTimeoutMs: number;
  /** Shown instead to clients that ask for this name (SNI, RFC 6066 §3). */
  readonly named?: {
    readonly name: string;
    readonly credentials: Credentials;
  };
}

/** What happens on the agent port. */
export interface AgentPortEvents {
  /** Call `start` before returning: see `nodeTlsTransport`. */
  onConnection(transport: Transport): void;
  /** A handshake that failed; the connection is gone. */
  onRefused(error: TlsHandshakeError): void;
  onProblem(line: string): void;
}

/** @throws {ListenError} */
export function listenTcp(
  at: ListenAddress,
  events: ConnectionEvents<Deno.TcpConn>,
): BoundListener {
  const listener = openTcp(at);
  const { hostname, port } = listener.addr as Deno.NetAddr;
  const address = hostPort(hostname, port);
  acceptLoop(listener, address, events);
  return { address, port, close: () => listener.close() };
}

/**
 * Listens on a unix socket that owner and group may use (mode 0770).
 *
 * A socket file that nobody listens on is a left-over and is removed.
 *
 * @param deleteExisting False: an existing file is never removed.
 * @throws {ListenError}
 */
export async function listenUnix(
  path: string,
  events: ConnectionEvents<Deno.UnixConn>,
  deleteExisting = true,
): Promise<BoundListener> {
  await clearPath(path, deleteExisting);
  // Set around the call and not by chmod after it: no moment with other modes.
  const umask = Deno.umask(0o007);
  let listener: Deno.UnixListener;
  try {
    listener = Deno.listen({ transport: "unix", path });
  } catch (error) {
    throw listenError(path, error);
  } finally {
    Deno.umask(umask);
  }
  acceptLoop(listener, path, events);
  return { address: path, port: 0, close: () => listener.close() };
}

/**
 * Listens for agents: TLS, with HTTP/2 in mind (the sockets are never paused).
 *
 * New credentials are used for the next handshake.
 *
 * @throws {ListenError}
 */
export async function listenAgentPort(
  options: AgentPortOptions,
  events: AgentPortEvents,
): Promise<BoundListener> {
  const { credentials, clientCertificate, named } = options;
  const secure = (material: TlsMaterial) => ({
    cert: material.cert,
    key: material.key,
    minVersion: options.minVersion,
    // Repeated at each reload, or every client would be refused after it.
    ...(material.ca === "" ? {} : { ca: [material.ca] }),
  });
  const server = tls.createServer({
    ...secure(credentials.current),
    requestCert: clientCertificate !== "none",
    // Verified all the same; `refuseClient` decides and can say why, which
    // the platform cannot once it has refused by itself.
    rejectUnauthorized: false,
    ALPNProtocols: [...options.alpn],
    handshakeTimeout: options.handshakeTimeoutMs,
    noDelay: true,
    allowHalfOpen: true,
    ...(named === undefined ? {} : {
      SNICallback: (name: string, answer: SniAnswer) => {
        const { current } = name === named.name
          ? named.credentials
          : credentials;
        answer(null, tls.createSecureContext(secure(current)));
      },
    }),
  } as tls.TlsOptions);
  server.on("tlsClientError", (error: Error, socket: tls.TLSSocket) => {
    const remote = remoteOf(socket);
    socket.destroy();
    events.onRefused(serverHandshakeError(error, remote));
  });
  server.on("secureConnection", (socket: tls.TLSSocket) => {
    const refusal = refuseClient(
      socket,
      clientCertificate,
      credentials.current.ca,
      remoteOf(socket),
    );
    if (refusal === undefined) {
      return events.onConnection(nodeTlsTransport(socket));
    }
    socket.on("error", () => {}); // It is refused already.
    socket.destroy();
    events.onRefused(refusal);
  });
  await listenNode(server, options.hostname, options.port);
  const bound = server.address() as { address: string; port: number };
  const address = hostPort(bound.address, bound.port);
  const stopReloads = credentials.onChange((material) =>
    server.setSecureContext(secure(material))
  );
  const stopWatching = keepOpen(server, bound, events);
  return {
    address,
    port: bound.port,
    close: () => {
      stopReloads();
      stopWatching();
      server.close();
    },
  };
}

type SniAnswer = (error: Error | null, context: tls.SecureContext) => void;

/** Opens a listener again that has stopped accepting. @returns How to end it. */
function keepOpen(
  server: tls.Server,
  bound: { readonly address: string; readonly port: number },
  events: Pick<AgentPortEvents, "onProblem">,
): () => void {
  const address = hostPort(bound.address, bound.port);
  const onProblem = (line: string) => events.onProblem(line);
  const reopener = new Reopener({
    timers: systemTimers,
    random: Math.random,
    open: () => listenNode(server, bound.address, bound.port),
    close: () => void server.close(),
    onFailure: ({ message }) => onProblem(`${message}; trying again`),
    onOpen: () => onProblem(`Accepting on ${address} again`),
  });
  const stopWatching = watchAcceptQueue(bound.port, systemTimers, () => {
    if (reopener.isOpening) return;
    onProblem(
      `Cannot accept on ${address}: the listener is stuck, probably for want ` +
        `of file descriptors; opening it again`,
    );
    server.close();
    reopener.start();
  });
  server.on("error", (error: Error) => {
    if (!reopener.isOpening) onProblem(error.message);
  });
  return () => {
    stopWatching();
    reopener.stop();
  };
}

/**
 * Serves plain HTTP, for health and administration only.
 *
 * @throws {ListenError}
 */
export function listenHttp(
  at: ListenAddress,
  handler: (request: Request) => Response | Promise<Response>,
): BoundListener & { finished: Promise<void> } {
  const address = hostPort(at.hostname, at.port);
  const controller = new AbortController();
  try {
    const server = Deno.serve({
      hostname: at.hostname === "" ? "::" : at.hostname,
      port: at.port,
      signal: controller.signal,
      onListen: () => {},
    }, handler);
    const { hostname, port } = server.addr as Deno.NetAddr;
    return {
      address: hostPort(hostname, port),
      port,
      close: () => controller.abort(),
      finished: server.finished,
    };
  } catch (error) {
    throw listenError(address, error);
  }
}

function openTcp(at: ListenAddress): Deno.TcpListener {
  const address = hostPort(at.hostname, at.port);
  try {
    return Deno.listen({ hostname: at.hostname || "::", port: at.port });
  } catch (error) {
    // A machine without IPv6 has no "::"; all of it is then 0.0.0.0.
    if (at.hostname !== "" || codeOf(error) === "EADDRINUSE") {
      throw listenError(address, error);
    }
  }
  try {
    return Deno.listen({ hostname: "0.0.0.0", port: at.port });
  } catch (error) {
    throw listenError(address, error);
  }
}

function listenNode(
  server: tls.Server,
  host: string,
  port: number,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error) =>
      reject(listenError(hostPort(host, port), error));
    server.once("error", onError);
    server.listen({ port, ...(host === "" ? {} : { host }) }, () => {
      server.off("error", onError);
      resolve();
    });
  });
}

async function clearPath(path: string, deleteExisting: boolean): Promise<void> {
  let found: Deno.FileInfo;
  try {
    found = await Deno.lstat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    throw listenError(path, error);
  }
  const refuse = (problem: string) => {
    throw new ListenError(
      "in-use",
      path,
      `Cannot listen on ${path}: ${problem}`,
    );
  };
  if (!found.isSocket) refuse("a file that is no socket has that name");
  if (!deleteExisting) refuse("the file exists and may not be removed");
  if (await answers(path)) refuse("another process listens there");
  await Deno.remove(path);
}

async function answers(path: string): Promise<boolean> {
  try {
    (await Deno.connect({ transport: "unix", path })).close();
    return true;
  } catch (error) {
    // Anything but "nobody listens" (a full backlog, say) means somebody does.
    return !(error instanceof Deno.errors.ConnectionRefused ||
      error instanceof Deno.errors.NotFound);
  }
}

function remoteOf(socket: tls.TLSSocket): string {
  return hostPort(
    (socket.remoteAddress ?? "an unknown address").replace(
      /^::ffff:(?=[0-9.]+$)/,
      "",
    ),
    socket.remotePort ?? 0,
  );
}
