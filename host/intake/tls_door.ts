/**
 * Stands in front of a TLS server of `node:tls`: counts whoever connects before
 * anything is done for them, and finds them again when their handshake is over.
 *
 * @module
 */

import type net from "node:net";
import type tls from "node:tls";
import type { Guest, Intake } from "./intake.ts";

/** See the module description. */
export class TlsDoor {
  readonly #intake: Intake;
  /** By the peer's address and port, which no two open sockets share. */
  readonly #inHandshake = new Map<string, Guest>();

  constructor(intake: Intake) {
    this.#intake = intake;
  }

  /** @returns false: there is no room, and the socket is closed. */
  admits(socket: net.Socket): boolean {
    const peer = peerOf(socket);
    const guest = this.#intake.enter(peer, () => socket.destroy());
    if (guest === undefined) {
      socket.destroy();
      return false;
    }
    this.#inHandshake.set(peer, guest);
    socket.once("close", () => {
      if (this.#inHandshake.get(peer) === guest) this.#inHandshake.delete(peer);
      guest.leave();
    });
    return true;
  }

  /** Who it is whose handshake is over. */
  came(secure: tls.TLSSocket): Guest | undefined {
    const peer = peerOf(secure);
    const guest = this.#inHandshake.get(peer);
    this.#inHandshake.delete(peer);
    return guest;
  }
}

function peerOf({ remoteAddress, remotePort }: net.Socket): string {
  const host = remoteAddress ?? "an unknown address";
  return host.includes(":")
    ? `[${host}]:${remotePort}`
    : `${host}:${remotePort}`;
}
