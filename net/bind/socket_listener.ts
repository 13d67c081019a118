/**
 * Listening sockets of whichever kind this machine allows: those of the C
 * library, else the platform's.
 *
 * @module
 */

import { listenPolledTcp, listenPolledUnix } from "./polled_listener.ts";
import type { DatagramAddress } from "../libc/socket_address.ts";
import { denoStream } from "../stream/platform_stream.ts";
import { wantUnixSockets } from "../stream/socket_connect.ts";
import type { Stream } from "../stream/stream.ts";

/** What accepts connections. */
export interface SocketListener {
  /** The bound address; port 0 for a path. */
  readonly address: DatagramAddress;
  /**
   * Waits for a connection. One call at a time.
   *
   * @throws {Deno.errors.BadResource | Deno.errors.Interrupted} It was closed.
   * @throws A system error with its `code`; the next call may do better.
   */
  accept(): Promise<Stream>;
  /**
   * A connection that is there already, without a promise; absent where the
   * platform listens. Not while `accept` waits.
   *
   * @throws A system error with its `code`.
   */
  acceptNow?(): Stream | undefined;
  /** @param isPatient See `AcceptEvents`; not where the platform listens. */
  close(isPatient?: boolean): void;
  /** See `PolledListener.leave`; absent where the platform listens. */
  leave?(): string | undefined;
}

/**
 * Listens on a host's address.
 *
 * @param backlog Connections that the kernel holds until they are accepted.
 * @throws A system error with its `code`.
 */
export function listenOnAddress(
  address: DatagramAddress,
  backlog: number,
): SocketListener {
  return listenPolledTcp(address, backlog) ??
    platformListener(Deno.listen({ ...address, tcpBacklog: backlog }));
}

/**
 * The same on a path, which must not exist.
 *
 * @param mode Of its file.
 */
export function listenOnPath(
  path: string,
  backlog: number,
  mode: number,
): SocketListener {
  const polled = listenPolledUnix(path, backlog, mode);
  if (polled !== undefined) return polled;
  wantUnixSockets();
  // The platform binds and listens at once: no moment with other modes.
  const umask = Deno.umask(0o777 & ~mode);
  try {
    return platformListener(Deno.listen({ transport: "unix", path }));
  } finally {
    Deno.umask(umask);
  }
}

function platformListener(
  listener: Deno.TcpListener | Deno.UnixListener,
): SocketListener {
  const addr = listener.addr as Deno.NetAddr | Deno.UnixAddr;
  return {
    address: "path" in addr ? { hostname: addr.path, port: 0 } : addr,
    accept: async () => denoStream(await listener.accept()),
    close: () => listener.close(),
  };
}
