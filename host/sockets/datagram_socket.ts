/**
 * A UDP socket that costs little per datagram.
 *
 * `node:dgram` makes a buffer of 64 KiB for each datagram that comes and two
 * copies of each that goes. `Deno.listenDatagram` reads into one buffer of ours,
 * but is there only under `--unstable-net`, which our launchers give and a
 * program that embeds us may not: so this takes what it finds. Where the C
 * library can be asked, that socket is read and written many datagrams at once.
 *
 * @module
 */

import { DenoDatagramSocket, platformListen } from "./deno_datagram_socket.ts";
import { NodeDatagramSocket } from "./node_datagram_socket.ts";
import type { DatagramAddress } from "./socket_address.ts";

export type { DatagramAddress } from "./socket_address.ts";

/** What the owner of a socket hears. */
export interface DatagramEvents {
  /** @param octets A view that is valid only during the call. */
  onDatagram(octets: Uint8Array, hostname: string, port: number): void;
  /** The socket can no longer receive. */
  onError(error: Error): void;
}

/** An open socket. */
export interface DatagramSocket {
  /** As bound. */
  readonly address: DatagramAddress;
  /** Sets who hears the events; called once. */
  listen(events: DatagramEvents): void;
  /**
   * Sends one datagram, which is copied. One that cannot be sent is lost, as UDP
   * loses them anywhere else.
   */
  send(octets: Uint8Array, to: DatagramAddress): void;
  /** Nothing is heard any more. @param closed Called when the port is free. */
  close(closed?: () => void): void;
}

/**
 * Binds a socket.
 *
 * @param at Port 0: any free one.
 * @throws A system error, such as one with code `EADDRINUSE`.
 */
export function openDatagramSocket(
  at: DatagramAddress,
): Promise<DatagramSocket> {
  const listen = platformListen();
  return listen === undefined
    ? NodeDatagramSocket.open(at)
    : DenoDatagramSocket.open(at, listen);
}
