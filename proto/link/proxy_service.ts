/**
 * The callee's side of `/ProxyService/Proxy`: an agent of the streams carrier,
 * and a server's gRPC frontend for clients of ours and for Go's.
 *
 * Layer: link. Decides what a caller may send when; the dialer is handed in.
 * The two kinds of callers differ in how they end (SPEC.md, "Ends"): ours
 * half-close, Go's END_STREAM and CLOSE_REQ end both directions.
 *
 * Reading order: `proxyService`, `ProxyCallee.onPacket`, `#connected`, the port.
 *
 * @module
 */

import type {
  MethodHandler,
  ServerCall,
  ServerCallEvents,
} from "../grpc/call.ts";
import { StatusCode } from "../grpc/status.ts";
import {
  type CloseRequest,
  type Data,
  type Int64,
  type Packet,
  PacketError,
} from "../packets/packet.ts";
import {
  PacketReader,
  type PacketReaderEvents,
} from "../packets/packet_reader.ts";
import type { Timer, Timers } from "../sync/clock.ts";
import type { Conduit } from "../transfer/conduit.ts";
import { join } from "../transfer/transfer.ts";
import {
  announceCapabilities,
  hasCapability,
  OUR_CAPABILITIES,
} from "./capabilities.ts";
import { CODE_FIELD } from "../grpc/status_codec.ts";
import {
  DIAL_FAILURE_FIELD,
  type DialError,
  type DialTarget,
} from "../peer/dial_error.ts";
import { abandon, connectionIdOf, type DialHandler } from "./dial_handler.ts";
import {
  readTraceparent,
  type TraceContext,
  TRACEPARENT_FIELD,
} from "../peer/trace_context.ts";
import type { Metadata } from "../grpc/metadata.ts";
import {
  EARLY_BYTES_MAX,
  type PacketObserver,
  type PendingDial,
  SILENT_OBSERVER,
} from "./link.ts";
import { FirstHold, type HoldOwner } from "./first_hold.ts";
import {
  type ConduitPort,
  GONE_LINGER_BYTES_MAX,
  PacketConduit,
} from "./packet_conduit.ts";
import { PacketSender } from "./send_packet.ts";

/** How long a call may stand without a DIAL_REQ. */
export const DIAL_REQ_WAIT_MS = 30_000;

/** See {@linkcode proxyService}. */
export interface ProxyServiceOptions {
  readonly onDial: DialHandler;
  /** Carries the bytes between the two until both are closed; {@linkcode join}. */
  readonly join?: (caller: Conduit, target: Conduit) => unknown;
  readonly timers: Timers;
  readonly observer?: PacketObserver;
  /** Largest message accepted; see `PACKET_MESSAGE_BYTES_MAX`. */
  readonly messageBytesMax?: number;
}

/** Serves `/ProxyService/Proxy`. connectIDs count up over all its calls. */
export function proxyService(options: ProxyServiceOptions): MethodHandler {
  let connectId = 0;
  const nextConnectId = () => ++connectId;
  return (call) => new ProxyCallee(call, options, nextConnectId);
}

class ProxyCallee
  implements ServerCallEvents, PacketReaderEvents, ConduitPort, HoldOwner {
  readonly #observer: PacketObserver;
  readonly #sender: PacketSender;
  readonly #reader: PacketReader;
  readonly #callerIsOurs: boolean;
  /** `asked`: DIAL_REQ was read; `gone`: the caller ended, its bytes may not. */
  #state: "idle" | "asked" | "dialing" | "connected" | "gone" | "over" = "idle";
  /** Set until the dial begins. */
  #target: DialTarget | undefined;
  #random: Int64 = 0;
  #connectId: Int64 = 0;
  #pending: PendingDial | undefined;
  #conduit: PacketConduit | undefined;
  /** Runs while idle, for DIAL_REQ. */
  #timer: Timer | undefined;
  /** Towards a Go caller, until it has spoken. */
  #hold: FirstHold | undefined;
  /** While dialing: part of a DATA packet has come, more of it is to come. */
  #isInsideData = false;

  constructor(
    private readonly call: ServerCall,
    private readonly options: ProxyServiceOptions,
    private readonly nextConnectId: () => Int64,
  ) {
    this.#observer = options.observer ?? SILENT_OBSERVER;
    this.#sender = new PacketSender(call, this.#observer);
    this.#callerIsOurs = hasCapability(call.metadata, "half-close");
    if (this.#callerIsOurs) this.#sender.widen();
    this.#reader = new PacketReader(this, options);
    this.#timer = options.timers.after(
      DIAL_REQ_WAIT_MS,
      () =>
        this.#finish(
          StatusCode.DEADLINE_EXCEEDED,
          `no DIAL_REQ came within ${DIAL_REQ_WAIT_MS / 1000} s`,
        ),
    );
  }

  get windowBytes(): number | undefined {
    return this.call.windowBytes;
  }

  // ---- events of the call ----

  onBody(chunk: Uint8Array): void {
    try {
      this.#reader.push(chunk);
    } catch (error) {
      if (!(error instanceof PacketError)) throw error;
      return this.#refuse(StatusCode.INVALID_ARGUMENT, error.message);
    }
    // After the whole chunk, so that early data after DIAL_REQ is known.
    if (this.#state === "asked") this.#dial();
  }

  onHalfClose(): void {
    switch (this.#state) {
      case "idle":
        return this.#finish(StatusCode.OK, "");
      case "dialing":
        if (this.#callerIsOurs) return this.#conduit!.deliverEnd();
        return this.#cancelDial();
      case "connected":
        if (this.#callerIsOurs) return this.#conduit!.deliverEnd();
        return this.#callerGone(this.#connectId);
    }
  }

  onWritable(): void {
    this.#conduit?.writable();
  }

  onCancel(reason: { readonly lost: boolean; readonly message: string }): void {
    const before = this.#state;
    this.#cancelTimer();
    if (before === "gone" || before === "over") return;
    this.#observer.streamFailed?.(
      reason.lost ? StatusCode.UNAVAILABLE : StatusCode.CANCELLED,
    );
    this.#state = "over";
    this.#pending?.cancel();
    if (before !== "connected") return;
    const conduit = this.#conduit!;
    if (reason.lost) {
      conduit.close({ kind: "lost", reason: reason.message });
    } else if (this.#callerIsOurs) {
      conduit.close({ kind: "reset", reason: reason.message });
    } else {
      // A Go program that gives a call up closes its connection: its earlier
      // bytes are still to arrive (SPEC.md, "Ends").
      this.#state = "gone";
      conduit.peerGone(GONE_LINGER_BYTES_MAX);
    }
  }

  // ---- packets received ----

  onPacket(packet: Exclude<Packet, Data>): void {
    this.#observer.packetReceived(packet.type, 0);
    if (this.#state === "over" || this.#state === "gone") return;
    switch (packet.type) {
      case "DIAL_REQ": {
        const { protocol, address, random } = packet;
        if (this.#state === "idle") {
          return this.#ask({ protocol, address }, random);
        }
        // Konnectivity would let the second dial take the call over.
        const error = "Cannot dial twice on one call: open another one";
        return this.#say({ type: "DIAL_RSP", error, connectId: 0, random });
      }
      case "CLOSE_REQ":
        return this.#onClose(packet);
      case "DIAL_CLS":
        if (this.#isDialing && packet.random === this.#random) {
          this.#cancelDial();
        }
        return;
      case "DATA_END":
        return this.#conduit?.deliverEnd();
    }
  }

  onData(connectId: Int64, piece: Uint8Array, leftBytes: number): void {
    if (leftBytes === 0) this.#observer.packetReceived("DATA", piece.length);
    const problem = this.#problemOfData(connectId);
    if (problem === "ignore") return this.credit(piece.length);
    if (problem !== undefined) {
      this.credit(piece.length);
      this.#say({ type: "CLOSE_RSP", connectId, error: problem, reset: "" });
      return this.#refuse(StatusCode.INVALID_ARGUMENT, problem);
    }
    this.#hold?.release();
    if (this.#state === "dialing") {
      return this.#onDataWhileDialing(piece, leftBytes);
    }
    this.#conduit!.deliver(piece, leftBytes);
  }

  /**
   * Early data that came after the dial had left, in a frame or a read of its
   * own, as it nearly always does. It follows the dial.
   */
  #onDataWhileDialing(piece: Uint8Array, leftBytes: number): void {
    const conduit = this.#conduit!;
    const isWhole = leftBytes === 0 && !this.#isInsideData;
    this.#isInsideData = leftBytes > 0;
    const mayGo = conduit.unconsumedBytes === 0 &&
      (isWhole || !conduit.datagrams);
    const sent = mayGo ? this.#pending?.sendEarly?.(piece) ?? 0 : 0;
    if (sent > 0) this.credit(sent);
    if (sent > 0 && sent === piece.length) return;
    conduit.deliver(piece.subarray(sent), leftBytes);
  }

  onEmptyDatagram(connectId: Int64): void {
    if (this.#problemOfData(connectId) !== undefined) return;
    this.#hold?.release();
    this.#conduit!.deliverEmptyDatagram();
  }

  onOverhead(bytes: number): void {
    this.credit(bytes);
  }

  /** Konnectivity's answers, word for word: Go programs search them. */
  #problemOfData(connectId: Int64): string | undefined {
    switch (this.#state) {
      case "idle":
        return connectId === 0 ? "ignore" : "backend not initialized";
      case "asked":
      case "dialing":
        return connectId === 0 ? undefined : "mismatched connection IDs";
      case "connected":
        return connectId === 0 || connectId === this.#connectId
          ? undefined
          : "mismatched connection IDs";
      default:
        return "ignore";
    }
  }

  #onClose({ connectId, reset, lost }: CloseRequest): void {
    if (this.#state === "idle") {
      const error = "backend uninitialized";
      return this.#say({ type: "CLOSE_RSP", connectId, error, reset: "" });
    }
    if (this.#isDialing) {
      this.#say({ type: "CLOSE_RSP", connectId, error: "", reset: "" });
      return this.#cancelDial();
    }
    if (reset !== "") {
      this.#conduit!.close({ kind: lost ? "lost" : "reset", reason: reset });
    } else this.#callerGone(connectId);
  }

  // ---- dialing ----

  get #isDialing(): boolean {
    return this.#state === "asked" || this.#state === "dialing";
  }

  #ask(target: DialTarget, random: Int64): void {
    this.#cancelTimer();
    this.#state = "asked";
    this.#target = target;
    this.#random = random;
    this.#conduit = new PacketConduit(this, {
      datagrams: target.protocol === "udp",
      timers: this.options.timers,
      observer: this.#observer,
      hold: true,
    });
  }

  #dial(): void {
    const target = this.#target!;
    this.#target = undefined;
    this.#state = "dialing";
    const pending = this.options.onDial(target, {
      connected: (conduit) => this.#connected(conduit),
      failed: (error) => this.#failed(error),
    }, {
      metadata: this.call.metadata,
      id: connectionIdOf(this.#random),
      trace: traceOf(this.call.metadata),
      takeEarlyData: () => this.#conduit!.takeHeld(EARLY_BYTES_MAX),
    });
    // It may have answered before it returned.
    if (this.#state === "dialing") this.#pending = pending;
  }

  #connected(target: Conduit): void {
    this.#pending = undefined;
    if (this.#state !== "dialing") {
      return abandon(target, "the caller gave up before the target answered");
    }
    this.#state = "connected";
    this.#connectId = this.nextConnectId();
    this.#sendHead();
    this.#sender.send({
      type: "DIAL_RSP",
      error: "",
      connectId: this.#connectId,
      random: this.#random,
    });
    const conduit = this.#conduit!;
    if (!this.#callerIsOurs) {
      this.#hold = new FirstHold(this.options.timers, this);
    }
    (this.options.join ?? join)(conduit, target);
    conduit.open();
  }

  #failed(error: DialError): void {
    if (this.#state !== "dialing") return;
    this.#pending = undefined;
    this.#sendHead(error);
    this.#sender.send({
      type: "DIAL_RSP",
      error: error.message,
      connectId: 0,
      random: this.#random,
    });
    this.#finish(StatusCode.OK, "");
  }

  #cancelDial(): void {
    this.#pending?.cancel();
    this.#finish(StatusCode.OK, "");
  }

  #mustHold(): boolean {
    if (this.#hold === undefined) return false;
    if (this.#hold.mustWait()) return true;
    this.#hold = undefined;
    return false;
  }

  onHoldOver(): void {
    this.#hold = undefined;
    this.#conduit!.writable();
  }

  // ---- requests of the conduit ----

  send(chunk: Uint8Array): number {
    if (this.#mustHold()) return 0;
    return this.#sender.sendStream(this.#connectId, chunk);
  }

  sendDatagram(datagram: Uint8Array): void {
    this.#sender.sendDatagram(this.#connectId, datagram);
  }

  sendEnd(): boolean {
    if (this.#mustHold()) return false;
    // The status that follows at once means the same.
    if (this.#callerIsOurs && this.#conduit!.peerEnded) return true;
    const connectId = this.#connectId;
    return this.#sender.sendIfRoom(
      this.#callerIsOurs
        ? { type: "DATA_END", connectId }
        // A Go client's Read gives EOF on it while its Write goes on.
        : { type: "DATA", connectId, data: new Uint8Array(0) },
    );
  }

  sendReset(reason: string, kind: "reset" | "lost"): void {
    if (!this.#callerIsOurs && this.call.room > 0) {
      // The one text that a Go client shows, to the caller of its Close.
      const connectId = this.#connectId;
      this.#say({ type: "CLOSE_RSP", connectId, error: reason, reset: reason });
    }
    const code = kind === "lost" ? StatusCode.UNAVAILABLE : StatusCode.ABORTED;
    // A stalled caller never makes room for the bytes that it did not take.
    if (this.call.room === 0) this.call.abort({ code, message: reason });
    this.#finish(code, reason);
  }

  bothEnded(): void {
    this.#conduit!.close({ kind: "clean" });
  }

  credit(bytes: number): void {
    this.call.consumed(bytes);
  }

  release(): void {
    if (this.#state === "connected") this.#finish(StatusCode.OK, "");
    this.#state = "over";
    this.#cancelTimer();
  }

  // ---- ends ----

  /** A Go caller closed both directions; its bytes still go to the target. */
  #callerGone(connectId: Int64): void {
    if (connectId !== this.#connectId) {
      const error = "mismatched connection IDs";
      this.#say({ type: "CLOSE_RSP", connectId, error, reset: "" });
      return this.#refuse(StatusCode.INVALID_ARGUMENT, error);
    }
    this.#say({ type: "CLOSE_RSP", connectId, error: "", reset: "" });
    this.#finish(StatusCode.OK, "");
    this.#state = "gone";
    this.#conduit!.peerGone(GONE_LINGER_BYTES_MAX);
  }

  /** The caller broke the protocol. */
  #refuse(code: StatusCode, message: string): void {
    const wasConnected = this.#state === "connected";
    this.#pending?.cancel();
    this.#finish(code, message);
    if (wasConnected) this.#conduit!.close({ kind: "reset", reason: message });
  }

  #finish(code: StatusCode, message: string): void {
    if (this.#state === "over" || this.#state === "gone") return;
    this.#state = "over";
    this.#cancelTimer();
    if (code !== StatusCode.OK) this.#observer.streamFailed?.(code);
    this.call.finish({ code, message });
  }

  /** A spent timer is not kept: a connection may live for days. */
  #cancelTimer(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#hold?.cancel();
    this.#hold = undefined;
  }

  #isHeadSent = false;

  #sendHead(error?: DialError): void {
    if (this.#isHeadSent) return;
    this.#isHeadSent = true;
    if (error === undefined) return this.call.sendMetadata(OUR_CAPABILITIES);
    const metadata = announceCapabilities();
    metadata.add(DIAL_FAILURE_FIELD, error.reason);
    metadata.add(CODE_FIELD, error.tunnelCode);
    this.call.sendMetadata(metadata);
  }

  #say(packet: Packet): void {
    this.#sendHead();
    this.#sender.send(packet);
  }
}

function traceOf(metadata: Metadata): TraceContext | undefined {
  // Most have none.
  if (metadata.text(TRACEPARENT_FIELD) === undefined) return undefined;
  return readTraceparent(metadata.texts(TRACEPARENT_FIELD));
}
