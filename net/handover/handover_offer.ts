/**
 * The elder process: gives its listening sockets to one that takes its place.
 *
 * ```
 * successor                          elder
 *   ask: sockets, command, replace ─►
 *                                   ◄─ yes: pid, agents    or no: why, pid
 *                                      (and stderr, if the elder has started it)
 *   more ───────────────────────────►
 *                                   ◄─ sockets: count, and the descriptors
 *   take: [some of them] ───────────►  does not accept with these for now
 *                                   ◄─ taken
 *   recall ─────────────────────────►
 *                                   ◄─ memory: a part, or null
 *   take: "all" ────────────────────►  accepts nobody any more, ends when idle
 *                                   ◄─ taken
 *   (it ends) ──────────────────────►  lets go of UDP ports, which nobody reads
 * ```
 *
 * Until the successor takes them, it accepts as before: a successor that fails
 * before has done no harm. What the kernel has queued belongs to the socket and
 * to neither process, so no queued client notices.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import type { Log } from "../../platform/log/log.ts";
import { DESCRIPTORS_MAX } from "../libc/descriptor_messages.ts";
import type { ListeningSocket, SocketStore } from "../bind/socket_store.ts";
import { ABSTRACT } from "../libc/unix_address.ts";
import {
  type HandoverFields,
  PacketListener,
  type PacketSocket,
} from "./packet_socket.ts";
import type { UpgradeRequests } from "./upgrade_requests.ts";

/** Sockets that another process accepts with from now on. */
export interface HandedOver {
  /** All of them: this process is to end when what runs has ended. */
  readonly isAll: boolean;
  /** The successor's process. */
  readonly pid: number;
  /** This process has started it. */
  readonly isOurs: boolean;
}

/** The process that makes the offer. */
export interface Incumbent {
  /** Such as `proxy`: only one of the same kind may take its place. */
  readonly command: string;
  /** It is about to end, so a successor need not insist. */
  readonly isDraining: () => boolean;
  /** A successor gets ready, or has ended before it was. */
  readonly asked?: (isReadying: boolean) => void;
  readonly handedOver: (handed: HandedOver) => void;
  /** What a successor goes on with, in packets. */
  readonly memory?: () =>
    | Iterable<HandoverFields>
    | AsyncIterable<HandoverFields>;
  /** The process that has taken over is gone before this one. */
  readonly successorEnded?: () => void;
  /** How many agents are linked, for a successor that has to wait for them. */
  readonly agents?: () => number | Promise<number>;
  /** Absent: it starts no successors itself. */
  readonly upgrades?: UpgradeRequests;
}

/** The log of this process. */
const STDERR = 2;

export class HandoverOffer {
  readonly #store: SocketStore;
  readonly #log: Log;
  readonly #isNamed: boolean;
  readonly #open = new Set<PacketSocket>();
  #listener: PacketListener | undefined;
  #successor: PacketSocket | undefined;

  /**
   * @param address A path, or a name behind `@`.
   * @throws A system error with its `code`.
   */
  constructor(
    address: string,
    private readonly incumbent: Incumbent,
    { store, log }: { readonly store: SocketStore; readonly log: Log },
  ) {
    this.#store = store;
    this.#log = log;
    this.#isNamed = address.startsWith(ABSTRACT);
    this.#listener = PacketListener.open(
      address,
      (socket) =>
        unawaited("socket", this.#converse(socket), () => socket.close()),
    );
  }

  /** Takes no further successors. */
  close(): void {
    this.#listener?.close();
    this.#listener = undefined;
    for (const socket of this.#open) socket.close();
  }

  async #converse(socket: PacketSocket): Promise<void> {
    this.#open.add(socket);
    try {
      const first = await socket.receiveFields();
      if (first === null) return;
      const { upgrades } = this.incumbent;
      if (upgrades?.takes(first)) {
        return await upgrades.serve(socket, first, this.#isNamed);
      }
      const refusal = this.#refusal(first);
      if (refusal !== undefined) {
        socket.send({ no: refusal, pid: Deno.pid });
        return;
      }
      this.#successor = socket;
      // One of an older version hangs up when it has the sockets.
      const isHandedOver = await this.#serve(socket) && first.stays === true;
      if (!isHandedOver) return;
      while (await socket.receiveFields() !== null);
      this.incumbent.successorEnded?.();
    } finally {
      if (this.#successor === socket) this.#successor = undefined;
      this.#open.delete(socket);
      socket.close();
    }
  }

  #refusal({ ask, command, replace }: HandoverFields): string | undefined {
    if (ask !== "sockets" || command !== this.incumbent.command) {
      return "other";
    }
    if (this.#successor !== undefined) return "busy";
    return replace === true || this.incumbent.isDraining()
      ? undefined
      : "running";
  }

  /** @returns Whether it has taken over. */
  async #serve(socket: PacketSocket): Promise<boolean> {
    const { pid } = socket.peer;
    this.#log.info(`process ${pid} gets ready to take over`);
    this.incumbent.asked?.(true);
    const left = [...this.#store.listening.keys()];
    const agents = await this.incumbent.agents?.() ?? 0;
    const isOurs = this.incumbent.upgrades?.isUnderWay === true;
    socket.send(
      { yes: true, pid: Deno.pid, agents, recalls: true },
      isOurs ? [STDERR] : [],
    );
    let memory: AsyncIterator<HandoverFields> | undefined;
    for (;;) {
      const words = await socket.receiveFields();
      if (words === null) break;
      const { more, take, recall } = words;
      if (recall === true) {
        memory ??= memoryOf(this.incumbent);
        const { value = null } = await memory.next();
        // One that is too long for a packet is left out.
        if (!socket.send({ memory: value })) {
          socket.send({ memory: {} });
        }
      } else if (more === true) {
        this.#give(socket, left.splice(0, DESCRIPTORS_MAX));
      } else if (take !== undefined && this.#letGo(socket, take)) return true;
    }
    this.#store.start();
    this.incumbent.asked?.(false);
    this.#log.warn(
      `process ${pid} has ended before it took over; this one goes on`,
      { code: "TUN913" },
    );
    return false;
  }

  #give(socket: PacketSocket, sockets: readonly ListeningSocket[]): void {
    const { listening } = this.#store;
    const descriptors = sockets
      .filter((one) => listening.has(one))
      .map(({ descriptor }) => descriptor);
    socket.send({ sockets: sockets.length }, descriptors);
  }

  /** @returns Whether that was all. */
  #letGo(socket: PacketSocket, take: unknown): boolean {
    const { pid } = socket.peer;
    const isAll = take === "all";
    const keys = new Set(Array.isArray(take) ? take : []);
    if (isAll) this.#store.handOver();
    else this.#store.hold((key) => keys.has(key));
    // Called before the answer: the successor offers its sockets there itself.
    if (isAll) this.#listener?.close();
    const isOurs = isAll && this.incumbent.upgrades?.handedOver() === true;
    this.incumbent.handedOver({ isAll, pid, isOurs });
    socket.send({ taken: true });
    return isAll;
  }
}

/** In parts, which may have to be requested. */
async function* memoryOf(
  { memory }: Incumbent,
): AsyncGenerator<HandoverFields, undefined> {
  yield* memory?.() ?? [];
}
