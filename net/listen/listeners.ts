/**
 * Opens listeners; those for unauthenticated peers are in `secure_listener.ts`.
 *
 * Every port of a process is opened here. An address that is bound already, by
 * another process that handed its sockets over (a restart without a gap, socket
 * activation) or by a listener that made room, is not bound again: its socket
 * is taken from the store (`net/bind/socket_store.ts`).
 *
 * @module
 */

import { plain } from "../admin/http_endpoints.ts";
import {
  type HttpHandler,
  HttpPort,
  type LimitReached,
} from "../admin/http_port.ts";
import { ownGroup } from "../admin/own_group.ts";
import { type AcceptEvents, acceptLoop } from "../bind/accept_loop.ts";
import { ListenError, listenError } from "../bind/listen_error.ts";
import { keyOfPath } from "../bind/socket_key.ts";
import {
  listenOnAddress,
  listenOnPath,
  type SocketListener,
} from "../bind/socket_listener.ts";
import { socketStore } from "../bind/socket_store.ts";
import type { Stream } from "../stream/stream.ts";
import { codeOf } from "../../platform/errors/error_code.ts";
import { removeFile } from "../../platform/files/atomic_file.ts";
import { hostPort, withoutBrackets } from "../../proto/peer/host_port.ts";
import { isLoopbackHost, parseIpAddress } from "../../proto/peer/ip_address.ts";

/** A listener that is open. */
export interface BoundListener {
  /** `host:port` as bound, or a path. */
  readonly address: string;
  /** The port that was bound, also when 0 was asked for; 0 for a path. */
  readonly port: number;
  /** Stops accepting. What was accepted goes on. */
  close(): void;
  /**
   * The same, and leaves the socket open for the next listener of this process
   * there, so that no connection is refused meanwhile.
   *
   * @returns Its key in the store; `undefined`: it is closed. Absent: not
   *   possible.
   */
  leave?(): string | undefined;
  /**
   * Settles when it is closed, and all that it still answers is answered.
   * Absent: there is nothing to wait for.
   */
  readonly finished?: Promise<void>;
}

/** The address to listen on. */
export interface ListenAddress {
  /** Empty means every address of the machine, IPv4 and IPv6. */
  readonly hostname: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

/**
 * Connections that the kernel holds where one is accepted in a turn: as many as
 * reconnect at once after a restart, or all that the kernel allows.
 */
export const PATIENT_BACKLOG = 4_096;

/**
 * Listens for connections.
 *
 * @returns Its `finished` settles when it is closed and the port is free, which
 *   takes the platform a moment.
 * @throws {ListenError}
 */
export function listenTcp(
  at: ListenAddress,
  events: AcceptEvents<Stream>,
): BoundListener & { readonly finished: Promise<void> } {
  const listener = openAt(
    at,
    (host) => listenOnAddress(host, PATIENT_BACKLOG),
  );
  const { hostname, port } = listener.address;
  const address = hostPort(hostname, port);
  const finished = acceptLoop(listener, address, events);
  return {
    address,
    port,
    close: () => listener.close(events.isPatient),
    ...(listener.leave && { leave: () => listener.leave!() }),
    finished,
  };
}

/**
 * Listens on a unix socket that owner and group may use.
 *
 * A socket file without a listener is a left-over and is removed.
 *
 * @param deleteExisting False: nothing is removed; `files`: a file that is no
 *   socket is removed, too, as Konnectivity does.
 * @param mode The file's mode.
 * @throws {ListenError}
 */
export async function listenUnix(
  path: string,
  events: AcceptEvents<Stream>,
  deleteExisting: boolean | "files" = true,
  mode = 0o770,
): Promise<BoundListener> {
  const isOpenAlready = socketStore()?.has(keyOfPath(path)) === true;
  if (!isOpenAlready) await clearPath(path, deleteExisting, events);
  let listener: SocketListener;
  try {
    listener = listenOnPath(path, PATIENT_BACKLOG, mode);
  } catch (error) {
    throw listenError(path, error);
  }
  acceptLoop(listener, path, events);
  return {
    address: path,
    port: 0,
    close: () => listener.close(events.isPatient),
  };
}

/**
 * The port for probes and scrapers. With several workers their parent has it,
 * and asks each of them.
 *
 * @throws {ListenError}
 */
export function listenHealth(
  at: ListenAddress,
  handler: HttpHandler,
  reached?: LimitReached,
): BoundListener {
  const group = ownGroup();
  if (group === undefined) return listenHttp(at, handler, reached);
  group.tells = handler;
  return { address: "", port: 0, ...group.health, close: () => {} };
}

/**
 * Serves plain HTTP, for health and administration only.
 *
 * @throws {ListenError}
 */
export function listenHttp(
  at: ListenAddress,
  handler: HttpHandler,
  reached?: LimitReached,
): BoundListener & { finished: Promise<void> } {
  const served = new HttpPort(guardNames(at.hostname, handler), reached);
  const { leave: _, ...bound } = listenTcp(at, {
    use: "administration",
    onConnection: (stream) => served.take(stream),
    // The operator learns it from the other ports.
    onProblem: () => {},
    isPatient: true,
  });
  return { ...bound, finished: bound.finished.finally(() => served.close()) };
}

/** Windows takes no IPv4 on an IPv6 socket, unless asked to: of the two, IPv4. */
const ALL = Deno.build.os === "windows" ? "0.0.0.0" : "::";

/**
 * Opens a listener at an address, or at all addresses.
 *
 * @throws {ListenError} Any error of `open`, in words.
 */
export function openAt<Listener>(
  at: ListenAddress,
  open: (address: ListenAddress) => Listener,
): Listener {
  const address = hostPort(at.hostname, at.port);
  try {
    return open({ hostname: at.hostname || ALL, port: at.port });
  } catch (error) {
    // A machine without IPv6 has no "::"; all of it is then 0.0.0.0.
    if (at.hostname !== "" || codeOf(error) === "EADDRINUSE") {
      throw listenError(address, error);
    }
  }
  try {
    return open({ hostname: "0.0.0.0", port: at.port });
  } catch (error) {
    throw listenError(address, error);
  }
}

async function clearPath(
  path: string,
  deleteExisting: boolean | "files",
  { onProblem }: AcceptEvents<Stream>,
): Promise<void> {
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
  const isPlain = found.isFile && deleteExisting === "files";
  if (!found.isSocket && !isPlain) {
    refuse("a file that is no socket has that name");
  }
  if (!deleteExisting) refuse("the file exists and may not be removed");
  if (isPlain) {
    onProblem(`removed the file ${path}: a socket is made there`, "TUN904");
  } else if (await answers(path)) refuse("something listens there already");
  try {
    // A predecessor that ends just now may have removed it itself.
    await removeFile(path);
  } catch (error) {
    throw listenError(path, error);
  }
}

async function answers(path: string): Promise<boolean> {
  try {
    (await Deno.connect({ transport: "unix", path })).close();
    return true;
  } catch (error) {
    // Any error but "connection refused" (a full backlog, say) means that there
    // is a listener.
    return !(error instanceof Deno.errors.ConnectionRefused ||
      error instanceof Deno.errors.NotFound);
  }
}

/**
 * Answers requests for an address or for `localhost`, and no others.
 *
 * @param hostname Where the port listens; beyond loopback people may use any
 *   name, so all are answered.
 */
export function guardNames(
  hostname: string,
  handler: HttpHandler,
): HttpHandler {
  if (!isLoopbackHost(hostname)) return handler;
  return (request, peer) => {
    const { hostname: requested } = new URL(request.url);
    const host = withoutBrackets(requested);
    const isKnown = parseIpAddress(host) !== undefined ||
      /^(?:.+\.)?localhost\.?$/.test(host);
    if (isKnown) return handler(request, peer);
    return plain(
      421,
      "This port is of this machine alone: ask it by its address, or as " +
        "localhost\n",
    );
  };
}
