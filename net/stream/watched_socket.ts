/**
 * Sockets whose end somebody wants to know.
 *
 * @module
 */

import type { ByteSocket } from "./byte_socket.ts";
import { PolledSocket } from "./polled_socket.ts";

/**
 * @param socket To be used as what this returns.
 * @param closed Called when it is closed from here, however often that is.
 */
export function watched(socket: ByteSocket, closed: () => void): ByteSocket {
  if (!(socket instanceof PolledSocket)) {
    return new WatchedSocket(socket, closed);
  }
  socket.onClosed = closed;
  return socket;
}

class WatchedSocket implements ByteSocket {
  readonly remoteAddress: string;
  readonly localAddress: string;
  readonly alpn: string;
  readonly serverName: string;
  readonly identity: ByteSocket["identity"];
  readonly peerCredentials: ByteSocket["peerCredentials"];
  readonly closesInOrder: boolean;
  readonly #socket: ByteSocket;
  readonly #closed: () => void;

  constructor(socket: ByteSocket, closed: () => void) {
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

  write(bytes: Uint8Array): Promise<number> {
    return this.#socket.write(bytes);
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
