/**
 * Many conduits on one call: what both ends of the packets carrier share.
 *
 * Layer: link. Finds conduits by connectID, lets them take turns at sending,
 * and prevents an unread conduit from blocking the others for good
 * (`packets_port.ts`). It knows neither dials nor callers.
 *
 * @module
 */

import type { CallBody } from "../grpc/call.ts";
import type {
  CloseRequest,
  CloseResponse,
  Data,
  DataEnd,
  Int64,
  Packet,
} from "../packets/packet.ts";
import {
  PacketReader,
  type PacketReaderEvents,
} from "../packets/packet_reader.ts";
import type { BudgetMember, ReceiveBudget } from "../streams/receive_budget.ts";
import type { Timers } from "../sync/clock.ts";
import { INTERNAL_ERROR, reportFault } from "../sync/faults.ts";
import type { PacketObserver } from "./link.ts";
import { PacketConduit } from "./packet_conduit.ts";
import { PacketsPort } from "./packets_port.ts";
import { PacketSender } from "./send_packet.ts";

/**
 * Bytes of control packets that may wait for a peer that reads nothing. A peer
 * that sends requests and never reads would otherwise grow them without end.
 */
export const CONTROL_KEPT_BYTES_MAX = 1024 * 1024;

/**
 * Closed connectIDs that are remembered, so that late DATA for one is answered
 * once and not for every packet. The oldest is forgotten first.
 */
export const CLOSED_IDS_MAX = 4_096;

/** Which end of the carrier this is; the protocol is not symmetric. */
type PacketsRole = "server" | "agent";

/** See {@linkcode PacketsMux}. */
interface PacketsMuxOptions {
  readonly body: CallBody;
  readonly role: PacketsRole;
  readonly timers: Timers;
  readonly observer: PacketObserver;
  readonly messageBytesMax?: number | undefined;
  /** A packet that belongs to no conduit: dials and drains. */
  readonly onPacket: (packet: Exclude<Packet, Data>) => void;
  /** The peer grew something over its limit; end the link. */
  readonly onOverrun: (reason: string) => void;
}

export class PacketsMux implements PacketReaderEvents, BudgetMember {
  readonly role: PacketsRole;
  readonly timers: Timers;
  readonly observer: PacketObserver;
  readonly sender: PacketSender;
  /** The process's, of which each port has a part. */
  readonly budget: ReceiveBudget;
  readonly #body: CallBody;
  readonly #reader: PacketReader;
  readonly #ports = new Map<Int64, PacketsPort>();
  /**
   * Ports of connections that the peer has closed and the owner still reads.
   */
  readonly #lingering = new Set<PacketsPort>();
  readonly #closedIds = new Set<Int64>();
  /** Ports that came up short, in the order of their turns. */
  readonly #waiting = new Set<PacketsPort>();
  /** The port whose turn it is; `spent`: none, until the next turn begins. */
  #turn: PacketsPort | "spent" | undefined;
  #isOver = false;
  #ending = 0;
  /** Whether the peer announced half-close; set once its metadata is known. */
  peerIsOurs = false;

  constructor(private readonly options: PacketsMuxOptions) {
    this.role = options.role;
    this.timers = options.timers;
    this.observer = options.observer;
    this.#body = options.body;
    this.sender = new PacketSender(options.body, options.observer);
    // With many conduits on one stream the budget could only reset all of them
    // or none.
    this.budget = options.body.divideBudget();
    this.budget.join(this);
    this.#reader = new PacketReader(this, options);
  }

  /** Conduits now. */
  get conduits(): number {
    return this.#ports.size;
  }

  /** Those that one end has half-closed. */
  get ending(): number {
    return this.#ending;
  }

  /** Of the one stream that all conduits share. */
  get windowBytes(): number | undefined {
    return this.#body.windowBytes;
  }

  /** The peer is one of ours. */
  recognisePeer(): void {
    this.peerIsOurs = true;
    this.sender.widen();
  }

  /**
   * Makes the conduit of a connection that both ends agreed on.
   *
   * @returns `undefined` when the id is in use on this link.
   */
  add(connectId: Int64, datagrams: boolean): PacketConduit | undefined {
    if (this.#ports.has(connectId)) return undefined;
    const port = new PacketsPort(this, connectId, datagrams);
    this.#ports.set(connectId, port);
    this.#closedIds.delete(connectId);
    return port.conduit;
  }

  /** Takes bytes of the call's body. @throws {PacketError} See `PacketReader`. */
  push(chunk: Uint8Array): void {
    this.#reader.push(chunk);
  }

  /** There is room: each waiting conduit gets a turn of one packet. */
  writable(): void {
    for (const port of this.#waiting) {
      if (this.#body.room === 0) break;
      // A port that has no room again goes to the end, and gets another turn.
      this.#waiting.delete(port);
      this.#turn = port;
      try {
        port.conduit.writable();
      } catch (error) {
        this.#faulted(port, error);
      }
    }
    this.#turn = undefined;
    if (this.#waiting.size > 0) this.#body.awaitRoom();
  }

  /** The link is over: every conduit is lost. */
  lose(reason: string): void {
    this.#isOver = true;
    for (const port of [...this.#ports.values()]) {
      try {
        port.conduit.close({ kind: "lost", reason });
      } catch (error) {
        reportFault("conduit", error);
      }
    }
    this.#leaveBudget();
  }

  *budgeted(): Iterable<PacketsPort> {
    yield* this.#ports.values();
    yield* this.#lingering;
  }

  /** Sends a packet other than DATA. */
  say(packet: Packet): void {
    if (this.#isOver) return;
    this.sender.send(packet);
    if (this.#body.keptBytes > CONTROL_KEPT_BYTES_MAX) {
      this.options.onOverrun(
        `Cannot keep ${this.#body.keptBytes} bytes of control packets: the ` +
          `peer reads nothing, ${CONTROL_KEPT_BYTES_MAX} are allowed`,
      );
    }
  }

  // ---- for ports ----

  /** Sends what fits and is fair: see `ConduitPort.send`. */
  send(port: PacketsPort, chunk: Uint8Array): number {
    if (this.#isOver) return 0;
    let sent = 0;
    while (sent < chunk.length && this.#mayGo(port)) {
      const rest = sent === 0 ? chunk : chunk.subarray(sent);
      const taken = this.sender.sendData(port.connectId, rest);
      if (taken === 0) break;
      if (this.#turn === port) this.#turn = "spent";
      sent += taken;
    }
    if (sent < chunk.length) this.#wait(port);
    return sent;
  }

  /** Stream credit for `bytes`. */
  credit(bytes: number): void {
    if (bytes > 0) this.#body.consumed(bytes);
  }

  /** One end has half-closed. */
  noteEnding(port: PacketsPort): void {
    if (port.isEnding || this.#ports.get(port.connectId) !== port) return;
    port.isEnding = true;
    this.#ending++;
  }

  /** Packets for this id are late from now on. */
  forget(port: PacketsPort): void {
    // Earlier bytes still wait for their reader, and count.
    if (!port.conduit.isClosed) this.#lingering.add(port);
    else if (this.#lingering.delete(port)) this.#leaveBudget();
    if (this.#ports.get(port.connectId) !== port) return;
    this.#ports.delete(port.connectId);
    if (port.isEnding) this.#ending--;
    this.#waiting.delete(port);
  }

  /** Late DATA for this id needs no answer: one is on its way. */
  rememberClosed(connectId: Int64): void {
    this.#closedIds.add(connectId);
    if (this.#closedIds.size <= CLOSED_IDS_MAX) return;
    const [oldest] = this.#closedIds;
    this.#closedIds.delete(oldest!);
  }

  // ---- packets received ----

  onData(connectId: Int64, piece: Uint8Array, leftBytes: number): void {
    if (leftBytes === 0) this.observer.packetReceived("DATA", piece.length);
    const port = this.#ports.get(connectId);
    if (port !== undefined) return this.#deliver(port, piece, leftBytes);
    this.credit(piece.length);
    if (leftBytes === 0) this.#answerLateData(connectId);
  }

  onEmptyDatagram(connectId: Int64): void {
    const port = this.#ports.get(connectId);
    try {
      port?.conduit.deliverEmptyDatagram();
    } catch (error) {
      this.#faulted(port!, error);
    }
  }

  onOverhead(bytes: number): void {
    this.credit(bytes);
  }

  onPacket(packet: Exclude<Packet, Data>): void {
    this.observer.packetReceived(packet.type, 0);
    switch (packet.type) {
      case "DATA_END":
      case "CLOSE_REQ":
      case "CLOSE_RSP": {
        const port = this.#ports.get(packet.connectId);
        if (port !== undefined) return this.#end(port, packet);
        if (packet.type === "DATA_END") return;
        return this.#onLateClose(packet.type, packet.connectId);
      }
      default:
        return this.options.onPacket(packet);
    }
  }

  #deliver(port: PacketsPort, piece: Uint8Array, leftBytes: number): void {
    try {
      port.deliver(piece, leftBytes);
    } catch (error) {
      this.#faulted(port, error);
    }
  }

  #end(
    port: PacketsPort,
    packet: DataEnd | CloseRequest | CloseResponse,
  ): void {
    try {
      if (packet.type === "DATA_END") {
        this.noteEnding(port);
        port.conduit.deliverEnd();
      } else port.onClose(packet);
    } catch (error) {
      this.#faulted(port, error);
    }
  }

  /** An internal error costs this conduit, and no other of the call. */
  #faulted(port: PacketsPort, error: unknown): void {
    reportFault("conduit", error);
    try {
      port.conduit.reset(INTERNAL_ERROR, "lost");
    } catch (error) {
      reportFault("conduit", error);
    }
  }

  /** Answers DATA for a connection that is not there, once per connection. */
  #answerLateData(connectId: Int64): void {
    if (connectId === 0 || this.#closedIds.has(connectId)) return;
    this.rememberClosed(connectId);
    this.say(
      this.role === "server" ? { type: "CLOSE_REQ", connectId, reset: "" } : {
        type: "CLOSE_RSP",
        connectId,
        error: "unrecognized connectID",
        reset: "",
      },
    );
  }

  #onLateClose(type: "CLOSE_REQ" | "CLOSE_RSP", connectId: Int64): void {
    this.#closedIds.delete(connectId);
    if (type === "CLOSE_RSP" || this.role === "server") return;
    const error = "Unknown connectID";
    this.say({ type: "CLOSE_RSP", connectId, error, reset: "" });
  }

  #leaveBudget(): void {
    if (this.#isOver && this.#lingering.size === 0) this.budget.leave(this);
  }

  #mayGo(port: PacketsPort): boolean {
    return this.#turn === port ||
      (this.#turn === undefined && this.#waiting.size === 0);
  }

  #wait(port: PacketsPort): void {
    this.#waiting.add(port);
    this.#body.awaitRoom();
  }
}
