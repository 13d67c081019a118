/**
 * Stands in front of a TLS server of `node:tls`: counts whoever connects before
 * anything is done for them, and finds them again when their handshake is over.
 *
 * @module
 */

import type net from "node:net";
import type tls from "node:tls";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { guarded } from "../../platform/errors/internal_errors.ts";
import type { Guest, Intake } from "./intake.ts";

/**
 * Between the beginnings of two handshakes. Each costs about as much, so that
 * this slows nobody down; but what came in between has its turn in between.
 */
export const HANDSHAKE_PACE_MS = 1;

/** Whose handshake is to begin. */
export interface InLine {
  /** It takes no turn any more. */
  isGone(): boolean;
  begin(): void;
}

/** See the module description. */
export class TlsDoor {
  readonly #intake: Intake;
  readonly #timers: Timers;
  /** No more than the intake lets be unauthenticated. */
  readonly #waiting: InLine[] = [];
  #timer: Timer | undefined;
  #lastMs = -Infinity;
  /** By the peer's address and port, which no two open sockets share. */
  readonly #inHandshake = new Map<string, Guest>();

  constructor(intake: Intake, timers: Timers) {
    this.#intake = intake;
    this.#timers = timers;
  }

  /**
   * Somebody has connected: lets it in when it is its turn, or closes it.
   *
   * @param letIn Begins the handshake.
   */
  knock(socket: net.Socket, letIn: (socket: net.Socket) => void): void {
    const guest = this.#admit(socket);
    if (guest === undefined) return void socket.destroy();
    this.expect(socket, guest);
    this.queue({
      isGone: () => socket.destroyed,
      begin: () =>
        guarded("accept", () => letIn(socket), () => socket.destroy()),
    });
  }

  /** Begins its handshake when it is its turn. */
  queue(visitor: InLine): void {
    const sinceMs = this.#timers.now() - this.#lastMs;
    if (this.#waiting.length === 0 && sinceMs >= HANDSHAKE_PACE_MS) {
      this.#lastMs = this.#timers.now();
      return visitor.begin();
    }
    this.#waiting.push(visitor);
    this.#timer ??= this.#timers.after(HANDSHAKE_PACE_MS, this.#next);
  }

  readonly #next = () => {
    this.#timer = undefined;
    // Whoever has left meanwhile takes no turn.
    let next = this.#waiting.shift();
    while (next?.isGone()) next = this.#waiting.shift();
    if (next === undefined) return;
    this.#lastMs = this.#timers.now();
    next.begin();
    if (this.#waiting.length === 0) return;
    this.#timer ??= this.#timers.after(HANDSHAKE_PACE_MS, this.#next);
  };

  /** @returns `undefined`: there is no room. */
  #admit(socket: net.Socket): Guest | undefined {
    const guest = this.#intake.arrive(peerOf(socket), () => socket.destroy());
    if (guest === undefined) return undefined;
    const isSlow = !guest.brake!.takeTry(this.#timers.now());
    if (isSlow) guest.refuseBraked();
    if (!isSlow && guest.takeHandshake()) return guest;
    guest.leave();
    return undefined;
  }

  /** Its handshake begins: `came` finds the guest again when it is over. */
  expect(socket: net.Socket, guest: Guest): void {
    const peer = peerOf(socket);
    this.#inHandshake.set(peer, guest);
    socket.once("close", () => {
      if (this.#inHandshake.get(peer) === guest) this.#inHandshake.delete(peer);
      guest.leave();
    });
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
