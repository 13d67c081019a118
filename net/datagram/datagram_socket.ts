/**
 * A UDP socket: the C library's where there is one, which is read and written
 * many datagrams at once; else the platform's.
 *
 * @module
 */

import { DenoDatagramSocket } from "./deno_datagram_socket.ts";
import { hostPort } from "../../proto/peer/host_port.ts";
import { openLibc } from "../libc/libc.ts";
import { PolledDatagramSocket } from "./polled_datagram_socket.ts";
import { keyOfAddress } from "../bind/socket_key.ts";
import { socketStore } from "../bind/socket_store.ts";
import { sharedPoller } from "../poll/poller.ts";
import type { DatagramAddress } from "../libc/socket_address.ts";

export type { DatagramAddress } from "../libc/socket_address.ts";

/** Events for the owner of a socket. */
export interface DatagramEvents {
  /**
   * @param bytes A view that is valid only during the call.
   * @param local The address of this machine that it came to, for answers; only
   *   of sockets for all addresses (`isServer`).
   */
  onDatagram(
    bytes: Uint8Array,
    hostname: string,
    port: number,
    local?: string,
  ): void;
  /** The socket can no longer receive. */
  onError(error: Error): void;
}

/** Options of a socket, unless it is for all senders. */
export interface DatagramSocketOptions {
  /**
   * The only peer: datagrams of others are dropped, and any error ends it, a
   * refusal (ICMP) too, which is reported when it comes. Only where there is a
   * C library, so the owner of the socket compares senders all the same.
   */
  readonly peer?: DatagramAddress;
  /**
   * Answers leave from the address that the datagram came to, also where the
   * socket has all of the machine's. Only where there is a C library.
   */
  readonly isServer?: boolean;
  /** The kernel buffers, each way. */
  readonly kernelBytes?: number;
}

/** An open socket. */
export interface DatagramSocket {
  /** The bound address. */
  readonly address: DatagramAddress;
  /** Whether each datagram comes with the address that it was sent to. */
  readonly reportsLocal?: boolean;
  /** Sets the receiver of the events; called once. */
  listen(events: DatagramEvents): void;
  /**
   * Sends one datagram, which is copied. One that cannot be sent is lost, as UDP
   * loses them anywhere else.
   */
  send(bytes: Uint8Array, to: DatagramAddress): void;
  /**
   * Nothing is received any more. @param closed Called when the port is free.
   */
  close(closed?: () => void): void;
  /**
   * The same, and leaves the socket open for the next listener at its address.
   *
   * @returns Its key in the store; `undefined`: it is closed. Absent: not
   *   possible.
   */
  leave?(): string | undefined;
}

/**
 * The sender of a datagram and the address that it was sent to; for answers.
 */
export function senderOf(
  hostname: string,
  port: number,
  local: string | undefined,
): DatagramAddress {
  return local === undefined ? { hostname, port } : { hostname, port, local };
}

/**
 * The key of a sender: one that sends to two addresses of this machine is two,
 * since each answer has to leave from the address that was used.
 */
export function senderKey(
  hostname: string,
  port: number,
  local: string | undefined,
): string {
  const remote = hostPort(hostname, port);
  return local === undefined ? remote : `${remote} ${local}`;
}

/**
 * Binds a socket.
 *
 * @param at Port 0: any free one.
 * @throws A system error, such as one with code `EADDRINUSE`.
 */
// deno-lint-ignore require-await -- what it throws is to be a rejection
export async function openDatagramSocket(
  at: DatagramAddress,
  { peer, kernelBytes, isServer }: DatagramSocketOptions = {},
): Promise<DatagramSocket> {
  if (sharedPoller() === undefined) return DenoDatagramSocket.open(at);
  const library = openLibc()!;
  if (peer !== undefined) {
    return PolledDatagramSocket.open(library, peer, kernelBytes);
  }
  const store = socketStore();
  const sharing = isServer ? store?.sharing : undefined;
  const port = at.port || (sharing?.portFor("udp", at.hostname) ?? 0);
  const wanted = { hostname: at.hostname || "0.0.0.0", port };
  const [first, ...others] = (store?.take(keyOfAddress("udp", wanted)) ?? [])
    .map((one) => PolledDatagramSocket.listenWith(library, one));
  if (first === undefined) {
    return PolledDatagramSocket.bind(library, { ...at, port });
  }
  return others.length === 0 ? first : joined(first, others);
}

/** Sockets of one address, which several processes had, as one. */
function joined(
  first: PolledDatagramSocket,
  others: readonly PolledDatagramSocket[],
): DatagramSocket {
  return {
    address: first.address,
    reportsLocal: first.reportsLocal,
    listen(events) {
      for (const socket of [first, ...others]) socket.listen(events);
    },
    send: (bytes, to) => first.send(bytes, to),
    close(closed) {
      for (const socket of others) socket.close();
      first.close(closed);
    },
    leave() {
      for (const socket of others) socket.leave();
      return first.leave();
    },
  };
}
