/**
 * One conduit of the packets carrier: its dialect and its share of the window.
 *
 * All conduits of a link share one HTTP/2 stream, and the protocol has no
 * credit per connection. So a limited number of each conduit's bytes may wait
 * here while the stream's credit is returned at once. Above that limit its
 * bytes hold the stream's credit, which stops the peer. A conduit that holds
 * credit without progress is reset alone, so that the others go on
 * (ARCHITECTURE.md, promise 2). All of it counts towards the process's budget,
 * which may be short before any of these limits is reached.
 *
 * @module
 */

import type { CloseRequest, CloseResponse, Int64 } from "../packets/packet.ts";
import type { Budgeted } from "../streams/receive_budget.ts";
import type { Timer } from "../sync/clock.ts";
import { FirstHold, type HoldOwner } from "./first_hold.ts";
import {
  type ConduitPort,
  GONE_LINGER_BYTES_MAX,
  PacketConduit,
} from "./packet_conduit.ts";
import type { PacketsMux } from "./packets_mux.ts";
import { QuietClose } from "./quiet_close.ts";

/**
 * Bytes of one conduit that may wait without holding up its link. Several
 * round trips' worth of a fast reader; a thousand stalled ones are 256 MiB.
 */
export const CONDUIT_QUEUE_BYTES = 256 * 1024;

/** How long a conduit may hold up its link without getting on. */
export const STALL_MS = 10_000;

/**
 * The least progress within {@linkcode STALL_MS}. A reader that takes a byte
 * now and then must not block all others.
 */
export const STALL_PROGRESS_BYTES = 64 * 1024;

export class PacketsPort implements ConduitPort, Budgeted, HoldOwner {
  readonly conduit: PacketConduit;
  readonly #quiet: QuietClose | undefined;
  progressTick = 0;
  waitingBytes = 0;
  /** One end has half-closed. */
  isEnding = false;
  /** Received bytes whose stream credit has not been returned. */
  #heldBytes = 0;
  #stall: Timer | undefined;
  /** Bytes passed on since the stall timer was set. */
  #progressBytes = 0;
  /** Agent, towards a Go server, until the caller has spoken. */
  #hold: FirstHold | undefined;
  /** Agent: CLOSE_REQ came; the answer waits until the target has all bytes. */
  #owesCloseRsp = false;

  constructor(
    private readonly mux: PacketsMux,
    readonly connectId: Int64,
    datagrams: boolean,
  ) {
    const { timers, observer } = mux;
    const conduit = new PacketConduit(this, {
      datagrams,
      timers,
      observer,
      cutsDatagrams: mux.role === "server" && !mux.peerIsOurs,
    });
    this.conduit = conduit;
    if (mux.peerIsOurs) return;
    if (mux.role === "agent") {
      this.#hold = new FirstHold(timers, this);
      return;
    }
    const sendClose = () =>
      mux.say({ type: "CLOSE_REQ", connectId, reset: "" });
    const unanswered = "the agent sent no CLOSE_RSP";
    this.#quiet = new QuietClose(timers, conduit, sendClose, unanswered);
  }

  get windowBytes(): number | undefined {
    return this.mux.windowBytes;
  }

  // ---- from the mux ----

  /** See `PacketConduit.deliver`. */
  deliver(piece: Uint8Array, leftBytes: number): void {
    this.#quiet?.touch();
    this.#heldBytes += piece.length;
    this.waitingBytes += piece.length;
    // Over the process's budget this conduit may be reset in here.
    this.mux.budget.received(this, piece.length);
    this.#hold?.release();
    this.conduit.deliver(piece, leftBytes);
    this.#settle();
  }

  /** Over the process's budget: see `Budgeted`. */
  giveUp(reason: string): void {
    this.conduit.reset(reason);
  }

  /** The peer closes both directions. */
  onClose(packet: CloseRequest | CloseResponse): void {
    const isRequest = packet.type === "CLOSE_REQ";
    const reason = packet.reset || (isRequest ? "" : packet.error);
    this.mux.forget(this);
    if (isRequest && this.mux.role === "agent") this.#owesCloseRsp = true;
    if (reason !== "") {
      const kind = packet.lost ? "lost" : "reset";
      const end = { kind, reason } as const;
      // Konnectivity's error follows the data, and must not overtake it.
      if (packet.reset === "") return this.conduit.closeBehind(end);
      return this.conduit.close(end);
    }
    // What an agent's target still sends when the frontend has gone is dropped;
    // what a frontend still sends when the target has gone is an error.
    this.conduit.peerGone(isRequest ? GONE_LINGER_BYTES_MAX : 0);
    this.#answerClose();
  }

  // ---- from the conduit ----

  send(chunk: Uint8Array): number {
    if (this.#mustHold()) return 0;
    const taken = this.mux.send(this, chunk);
    this.#quiet?.sent(taken);
    return taken;
  }

  sendDatagram(datagram: Uint8Array): void {
    this.#quiet?.sent(datagram.length);
    this.mux.sender.sendDatagram(this.connectId, datagram);
  }

  sendEnd(isGone: boolean): boolean {
    if (this.#mustHold()) return false;
    this.mux.noteEnding(this);
    const { connectId } = this;
    if (this.mux.peerIsOurs) this.mux.say({ type: "DATA_END", connectId });
    else if (this.#quiet !== undefined) this.#quiet.start(isGone);
    else {
      // A Go server knows no half-close, and its frontends wait for this.
      this.mux.forget(this);
      this.mux.rememberClosed(connectId);
      this.mux.say({ type: "CLOSE_RSP", connectId, error: "", reset: "" });
      this.conduit.deliverEnd();
    }
    return true;
  }

  sendReset(reason: string, kind: "reset" | "lost"): void {
    const { connectId } = this;
    const why = kind === "lost"
      ? { reset: reason, lost: true } as const
      : { reset: reason };
    this.mux.rememberClosed(connectId);
    this.mux.say(
      this.mux.role === "server"
        ? { type: "CLOSE_REQ", connectId, ...why }
        : { type: "CLOSE_RSP", connectId, error: reason, ...why },
    );
  }

  bothEnded(): void {
    this.conduit.close({ kind: "clean" });
  }

  credit(bytes: number): void {
    this.waitingBytes -= bytes;
    this.mux.budget.consumed(this, bytes);
    this.#quiet?.touch();
    this.#progressBytes += bytes;
    this.#settle();
    this.#answerClose();
  }

  release(): void {
    this.#quiet?.cancel();
    this.#hold?.cancel();
    this.#holdsNoMore();
    this.mux.forget(this);
    this.#answerClose();
  }

  #mustHold(): boolean {
    if (this.#hold === undefined) return false;
    if (this.#hold.mustWait()) return true;
    this.#hold = undefined;
    return false;
  }

  onHoldOver(): void {
    this.#hold = undefined;
    this.conduit.writable();
  }

  // ---- the share of the window ----

  #settle(): void {
    const over = this.conduit.unconsumedBytes - CONDUIT_QUEUE_BYTES;
    const wanted = Math.max(0, over);
    if (this.#heldBytes > wanted) {
      this.mux.credit(this.#heldBytes - wanted);
      this.#heldBytes = wanted;
    }
    if (this.#heldBytes === 0) this.#holdsNoMore();
    else if (this.#stall === undefined) {
      this.mux.observer.conduitHolds?.(1);
      this.#watch();
    }
  }

  #holdsNoMore(): void {
    if (this.#stall === undefined) return;
    this.#stall.cancel();
    this.#stall = undefined;
    this.mux.observer.conduitHolds?.(-1);
  }

  #watch(): void {
    this.#progressBytes = 0;
    this.#stall = this.mux.timers.after(STALL_MS, () => {
      if (this.#progressBytes >= STALL_PROGRESS_BYTES) return this.#watch();
      this.mux.observer.conduitStalled?.();
      this.conduit.reset(
        `Cannot hold up the link any longer: ${this.conduit.unconsumedBytes} ` +
          `bytes were not read within ${STALL_MS / 1000} s`,
      );
    });
  }

  #answerClose(): void {
    if (!this.#owesCloseRsp || this.conduit.unconsumedBytes > 0) return;
    this.#owesCloseRsp = false;
    const { connectId } = this;
    this.mux.say({ type: "CLOSE_RSP", connectId, error: "", reset: "" });
  }
}
