/**
 * Finds out about TCP peers that vanished: a machine that lost its power, or a
 * firewall that forgot a connection, sends nothing, and a connection on which
 * we write nothing would stay without end, with all its resources.
 *
 * The kernel probes such peers itself once that is switched on (TCP keepalive,
 * RFC 9293 §3.8.4; Go does so on every socket). Here it is switched on from
 * time to time for all sockets that are still open: short connections, which
 * are nearly all, pay nothing for it. Accepted sockets inherit it from
 * listening ones. Without a C library there are no probes.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";
import { DESCRIPTOR_GAP_MAX, type LibC, openLibc } from "./libc.ts";
import {
  IPPROTO_TCP,
  SO_KEEPALIVE,
  SO_PROTOCOL,
  socketOption,
  SOL_SOCKET,
} from "./socket_option.ts";
import { keepAlive } from "./tcp_options.ts";

/** Time between two rounds. */
export const DEAD_PEERS_LOOK_INTERVAL_MS = 30_000;

/** Descriptors looked at in one go, without a turn for others: 1 ms. */
export const LOOKED_AT_ONCE_MAX = 1_000;

/**
 * After a minute of silence a peer is probed four times, 15 s apart: so a
 * vanished peer is found after two minutes. Shorter times would cost money on
 * metered lines.
 */
export const KEEPALIVE = { idleS: 60, intervalS: 15, probes: 4 } as const;

export class DeadPeers {
  #timer: Timer | undefined;

  constructor(private readonly timers: Timers) {
    const library = openLibc();
    if (library !== undefined) this.#wait(library);
  }

  /** Looks no more; sockets keep their options. */
  stop(): void {
    this.#timer?.cancel();
  }

  #wait(library: LibC): void {
    this.#timer = this.timers.after(
      DEAD_PEERS_LOOK_INTERVAL_MS,
      () => this.#look(library, { next: 0, last: 0 }),
    );
  }

  #look(library: LibC, position: ScanPosition): void {
    if (lookFrom(library, position)) return this.#wait(library);
    this.#timer = this.timers.after(0, () => this.#look(library, position));
  }
}

/** How far a look has come. */
interface ScanPosition {
  next: number;
  /** The last descriptor that was a socket. */
  last: number;
}

/** @returns Whether that was the last of them. */
function lookFrom(library: LibC, position: ScanPosition): boolean {
  const end = position.next + LOOKED_AT_ONCE_MAX;
  for (; position.next < end; position.next++) {
    if (position.next - position.last > DESCRIPTOR_GAP_MAX) return true;
    const protocol = socketOption(
      library,
      position.next,
      SOL_SOCKET,
      SO_PROTOCOL,
    );
    if (protocol === undefined) continue;
    position.last = position.next;
    if (protocol !== IPPROTO_TCP) continue;
    if (socketOption(library, position.next, SOL_SOCKET, SO_KEEPALIVE) !== 0) {
      continue;
    }
    keepAlive(library, position.next, KEEPALIVE);
  }
  return false;
}
