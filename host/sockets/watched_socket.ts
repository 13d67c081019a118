/**
 * Sockets whose end somebody wants to know.
 *
 * @module
 */

import type { OctetSocket } from "./octet_socket.ts";
import { PolledSocket } from "./polled/polled_socket.ts";

/**
 * @param socket To be used as what this returns.
 * @param closed Called when it is closed from here, however often that is.
 */
export function watched(socket: OctetSocket, closed: () => void): OctetSocket {
  if (!(socket instanceof PolledSocket)) {
    return new WatchedSocket(socket, closed);
  }
  socket.onClosed = closed;
  return socket;
}

class WatchedSocket implements OctetSocket {
  readonly remoteAddress: string;
  readonly localAddress: string;
  readonly alpn: string;
  readonly serverName: string;
  readonly identity: OctetSocket["identity"];
  readonly peerCredentials: OctetSocket["peerCredentials"];
  readonly closesInOrder: boolean;
  readonly #socket: OctetSocket;
  readonly #closed: () => void;

  constructor(socket: OctetSocket, closed: () => void) {
    this.remoteAddress = socket.remoteAddress;
    this.localAddress = socket.localAddress;
    this.alpn = socket.alpn;
    this.serverName = socket.serverName ?? "";
    this.identity = socket.identity;
    this.peerCredentials = socket.peerCredentials;
    this.closesInOrder = socket.closesInOrder;
    this.#socket = socket;
    this.#closed = closed;
  }

  read(into: Uint8Array): Promise<number | null> {
    return this.#socket.read(into);
  }

  write(octets: Uint8Array): Promise<number> {
    return this.#socket.write(octets);
  }

  closeWrite(): Promise<void> {
    return this.#socket.closeWrite();
  }

  close(): void {
    this.#socket.close();
    this.#closed();
  }

  reset(): void {
    this.#socket.reset();
    this.#closed();
  }
}
