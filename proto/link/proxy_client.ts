/**
 * The caller's side of `/ProxyService/Proxy`: one call is one conduit.
 *
 * Layer: link. Used by the client library towards a server (ours or
 * Konnectivity's) and by a server towards an agent of the streams carrier. The
 * response head shows which of the two servers it is.
 *
 * Reading order: `dialProxy`, then `ProxyCall.onPacket`, then its port methods.
 *
 * @module
 */

import type { Code } from "../codes/codes.ts";
import type { ClientCall, ClientCallEvents } from "../grpc/call.ts";
import { requestHead, startCall, type StreamOpener } from "../grpc/client.ts";
import type { Metadata } from "../grpc/metadata.ts";
import type { HeaderField } from "../hpack/header_field.ts";
import {
  GrpcError,
  type Status,
  StatusCode,
  statusName,
} from "../grpc/status.ts";
import {
  type Data,
  type Int64,
  type Packet,
  PacketError,
} from "../packets/packet.ts";
import {
  PacketReader,
  type PacketReaderEvents,
} from "../packets/packet_reader.ts";
import type { Timers } from "../sync/clock.ts";
import {
  announceCapabilities,
  hasCapability,
  PROXY_PATH,
} from "./capabilities.ts";
import {
  codeNamed,
  codeOfWords,
  DialError,
  dialFailureOf,
  type DialTarget,
} from "../peer/dial_error.ts";
import {
  type DialEvents,
  EARLY_BYTES_MAX,
  type PacketObserver,
  type PendingDial,
  SILENT_OBSERVER,
} from "./link.ts";
import { CODE_FIELD } from "../grpc/status_codec.ts";
import { type ConduitPort, PacketConduit } from "./packet_conduit.ts";
import { QuietClose } from "./quiet_close.ts";
import { PacketSender } from "./send_packet.ts";

/** See {@linkcode dialProxy}. */
interface DialProxyOptions {
  readonly authority: string;
  readonly scheme?: "http" | "https";
  /** Sent with the call; the capabilities are added. */
  readonly metadata?: Metadata;
  /** What {@linkcode proxyHead} made of the three above. */
  readonly head?: readonly HeaderField[];
  readonly timers: Timers;
  /**
   * The `random` of DIAL_REQ: `randomDialId` when the other end may be a Go
   * server, any number otherwise (one call has one dial).
   */
  readonly dialId: Int64;
  readonly observer?: PacketObserver | undefined;
  /**
   * What the client sent already; it leaves together with DIAL_REQ. A Go server
   * drops it unread, so it is sent again once the connection stands.
   */
  readonly earlyData?: Uint8Array | undefined;
  /**
   * With it early data waits until `leave` is called, or for the answer.
   */
  readonly mayLeave?: ((leave: () => void) => void) | undefined;
  /**
   * Called just before early data leaves; a `DialError` that it throws ends the
   * dial instead.
   */
  readonly onSending?: (() => void) | undefined;
  /** One for many calls: idle connections are many. */
  readonly observing?: CallObserver;
  /** Largest message accepted; see `PACKET_MESSAGE_BYTES_MAX`. */
  readonly messageBytesMax?: number;
}

/** Receives counts of calls. */
export interface CallObserver {
  /** One end has half-closed; called once at most. */
  onEnding?(): void;
  /** The call is over, however it went; called exactly once. */
  onOver(wasEnding: boolean): void;
}

/**
 * The head of the calls of {@linkcode dialProxy}, for callers that make many.
 */
export function proxyHead(
  { authority, scheme, metadata }: Pick<
    DialProxyOptions,
    "authority" | "scheme" | "metadata"
  >,
): readonly HeaderField[] {
  return requestHead({
    path: PROXY_PATH,
    authority,
    scheme,
    metadata: announceCapabilities(metadata),
  });
}

/**
 * Makes the peer connect to `target`.
 *
 * @param events `onFailed` may be called before this returns, when the
 *   connection takes no more calls.
 * @returns `cancel` gives up with RST_STREAM CANCEL, while the dial is pending.
 * @throws {RangeError} If `earlyData` exceeds {@linkcode EARLY_BYTES_MAX}.
 */
export function dialProxy(
  connection: StreamOpener,
  target: DialTarget,
  events: DialEvents,
  options: DialProxyOptions,
): PendingDial {
  const earlyBytes = options.earlyData?.length ?? 0;
  if (earlyBytes > EARLY_BYTES_MAX) {
    throw new RangeError(
      `Cannot send ${earlyBytes} bytes of early data: ` +
        `${EARLY_BYTES_MAX} are allowed`,
    );
  }
  const early = options.earlyData === undefined ? [] : [options.earlyData];
  const call = new ProxyCall({ target, events, options, early });
  call.start(connection);
  return call;
}

/** The task of a call, and its caller. */
interface CallRequest {
  readonly target: DialTarget;
  readonly events: DialEvents;
  readonly options: DialProxyOptions;
  /** Bytes that were sent before the answer; a Go server wants them again. */
  readonly early: Uint8Array[];
}

class ProxyCall
  implements PendingDial, ClientCallEvents, PacketReaderEvents, ConduitPort {
  /** Forgotten with the answer: a connection may live for days. */
  #request: CallRequest | undefined;
  readonly #observing: CallObserver | undefined;
  #isEnding = false;
  readonly #observer: PacketObserver;
  readonly #reader: PacketReader;
  #state: "dialing" | "connected" | "over" = "dialing";
  #call: ClientCall | undefined;
  #sender!: PacketSender;
  #conduit: PacketConduit | undefined;
  #connectId: Int64 = 0;
  #peerIsOurs = false;
  #failure = dialFailureOf(undefined);
  #failureCode: Code | undefined;
  /** The first bytes have left. */
  #hasLeft = false;
  /** Towards Go peers only. */
  #quiet: QuietClose | undefined;

  constructor(request: CallRequest) {
    const { options } = request;
    this.#request = request;
    this.#observing = options.observing;
    this.#observer = options.observer ?? SILENT_OBSERVER;
    this.#reader = new PacketReader(this, options);
  }

  get windowBytes(): number | undefined {
    return this.#call?.windowBytes;
  }

  start(connection: StreamOpener): void {
    const { target, options } = this.#request!;
    const { authority, dialId, mayLeave } = options;
    const head = options.head ?? proxyHead(options);
    try {
      this.#call = startCall(
        connection,
        { path: PROXY_PATH, authority, head },
        this,
      );
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error;
      return this.#fail(
        new DialError("link-lost", error.message, { loss: "unprocessed" }),
      );
    }
    this.#sender = new PacketSender(this.#call, this.#observer);
    this.#sender.send({
      type: "DIAL_REQ",
      protocol: target.protocol,
      address: target.address,
      random: dialId,
    });
    if (mayLeave === undefined) this.#release();
    else mayLeave(() => this.#release());
  }

  /** @returns Whether early bytes have left, or leave now. */
  #release(): boolean {
    if (this.#state !== "dialing" || this.#hasLeft) return this.#hasLeft;
    const { target, options, early } = this.#request!;
    try {
      options.onSending?.();
    } catch (error) {
      if (!(error instanceof DialError)) throw error;
      this.#fail(error);
      return false;
    }
    this.#hasLeft = true;
    for (const bytes of early) this.#sendEarly(target, 0, bytes);
    return true;
  }

  /** See `PendingDial.sendEarly`. */
  sendEarly(bytes: Uint8Array): number {
    if (this.#state !== "dialing" || this.#request === undefined) return 0;
    const { target, early } = this.#request;
    const sent = early.reduce((sum, { length }) => sum + length, 0);
    const taken = Math.min(bytes.length, EARLY_BYTES_MAX - sent);
    const isCut = taken < bytes.length && target.protocol === "udp";
    if (taken === 0 || isCut) return 0;
    const copy = bytes.slice(0, taken);
    early.push(copy);
    this.#sendEarly(target, 0, copy);
    return taken;
  }

  cancel(): void {
    if (this.#state !== "dialing") return;
    this.#over();
    this.#call?.cancel();
  }

  // ---- events of the call ----

  onMetadata(metadata: Metadata): void {
    this.#peerIsOurs = hasCapability(metadata, "half-close");
    if (this.#peerIsOurs) this.#sender.widen();
    this.#failure = dialFailureOf(metadata);
    this.#failureCode = codeNamed(metadata.text(CODE_FIELD));
  }

  onBody(chunk: Uint8Array): void {
    try {
      this.#reader.push(chunk);
    } catch (error) {
      if (!(error instanceof PacketError)) throw error;
      this.#giveUp(error.message);
    }
  }

  onWritable(): void {
    this.#conduit?.writable();
  }

  onStatus(status: Status, _trailers: Metadata, lost: boolean): void {
    if (this.#state === "over") return;
    if (status.code !== StatusCode.OK) {
      this.#observer.streamFailed?.(status.code);
    }
    const reason = status.message || statusName(status.code);
    if (this.#state === "dialing") {
      this.#over();
      return this.#request?.events.onFailed(dialErrorOf(status, reason, lost));
    }
    const conduit = this.#conduit!;
    // A stream that the peer reset was given up on purpose, such as one that
    // had its memory for too long; UNAVAILABLE is a connection that is gone.
    if (status.code === StatusCode.UNAVAILABLE) {
      conduit.close({ kind: "lost", reason });
    } else if (status.code !== StatusCode.OK) {
      conduit.close({ kind: "reset", reason });
    } else if (conduit.isEnded) {
      conduit.deliverEnd();
      conduit.close({ kind: "clean" });
    } else {
      conduit.peerGone(0);
    }
  }

  // ---- packets received ----

  onPacket(packet: Exclude<Packet, Data>): void {
    this.#observer.packetReceived(packet.type, 0);
    if (this.#state === "dialing") this.#onAnswer(packet);
    else if (this.#state === "connected") this.#onControl(packet);
  }

  onData(connectId: Int64, piece: Uint8Array, leftBytes: number): void {
    if (leftBytes === 0) this.#observer.packetReceived("DATA", piece.length);
    if (this.#state !== "connected") return this.credit(piece.length);
    if (connectId !== this.#connectId) {
      this.credit(piece.length);
      return this.#giveUp(
        `Cannot take data for connection ${connectId}: this call carries ` +
          `connection ${this.#connectId}`,
      );
    }
    this.#quiet?.touch();
    this.#conduit!.deliver(piece, leftBytes);
  }

  onEmptyDatagram(): void {
    this.#conduit?.deliverEmptyDatagram();
  }

  onOverhead(bytes: number): void {
    this.credit(bytes);
  }

  #onAnswer(packet: Exclude<Packet, Data>): void {
    switch (packet.type) {
      case "DIAL_RSP": {
        if (packet.random !== this.#request?.options.dialId) {
          return this.#giveUp("the answer is for another dial");
        }
        if (packet.error === "") return this.#connect(packet.connectId);
        const reason = this.#failure;
        const code = this.#failureCode ?? codeOfWords(reason, packet.error);
        return this.#fail(
          new DialError(reason, packet.error, { code }),
        );
      }
      case "DIAL_CLS":
        return this.#fail(new DialError("dial-closed", "dial closed"));
      case "CLOSE_RSP":
        return this.#fail(
          new DialError("endpoint", packet.error || "connection closed"),
        );
    }
  }

  #connect(connectId: Int64): void {
    const { target, events, options, early } = this.#request!;
    const { timers } = options;
    if (!this.#release()) return;
    this.#request = undefined;
    this.#state = "connected";
    this.#connectId = connectId;
    const conduit = new PacketConduit(this, {
      datagrams: target.protocol === "udp",
      timers,
      observer: this.#observer,
    });
    this.#conduit = conduit;
    if (!this.#peerIsOurs) {
      const sendClose = () =>
        this.#sender.send({ type: "CLOSE_REQ", connectId, reset: "" });
      const unanswered = "no CLOSE_RSP came";
      this.#quiet = new QuietClose(timers, conduit, sendClose, unanswered);
      for (const bytes of early) this.#sendEarly(target, connectId, bytes);
    }
    events.onConnected(conduit);
  }

  #onControl(packet: Exclude<Packet, Data>): void {
    const conduit = this.#conduit!;
    switch (packet.type) {
      case "DATA_END":
        this.#ending();
        return conduit.deliverEnd();
      case "CLOSE_RSP": {
        const reason = packet.reset || packet.error;
        const kind = packet.lost ? "lost" : "reset";
        if (reason !== "") conduit.close({ kind, reason });
        else conduit.peerGone(0);
      }
    }
  }

  // ---- requests of the conduit ----

  send(chunk: Uint8Array): number {
    const sent = this.#sender.sendStream(this.#connectId, chunk);
    this.#quiet?.sent(sent);
    return sent;
  }

  sendDatagram(datagram: Uint8Array): void {
    this.#quiet?.sent(datagram.length);
    this.#sender.sendDatagram(this.#connectId, datagram);
  }

  sendEnd(isGone: boolean): boolean {
    this.#ending();
    if (this.#quiet === undefined) this.#call!.halfClose();
    else this.#quiet.start(isGone);
    return true;
  }

  sendReset(): void {
    this.#call!.cancel();
  }

  bothEnded(): void {
    // Ours: the callee's status follows, and only that shows whether our last
    // bytes reached the target. A Go server is sent CLOSE_REQ when it is quiet.
  }

  credit(bytes: number): void {
    this.#quiet?.touch();
    this.#call!.consumed(bytes);
  }

  release(): void {
    this.#over();
    this.#quiet?.cancel();
    // Harmless when a status has ended the call already.
    this.#call!.cancel();
  }

  #sendEarly(target: DialTarget, connectId: Int64, bytes: Uint8Array): void {
    if (target.protocol === "udp") {
      this.#sender.sendDatagram(connectId, bytes);
    } else this.#sender.sendWhole(connectId, bytes);
  }

  /** The peer broke the protocol. */
  #giveUp(reason: string): void {
    if (this.#state === "dialing") {
      this.#fail(new DialError("endpoint", reason));
    } else if (this.#state === "connected") this.#conduit!.reset(reason);
  }

  #fail(error: DialError): void {
    this.#over();
    // There is no call when the connection took none.
    this.#call?.cancel();
    this.#request?.events.onFailed(error);
  }

  #over(): void {
    this.#state = "over";
    this.#observing?.onOver(this.#isEnding);
  }

  #ending(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#observing?.onEnding?.();
  }
}

function dialErrorOf(status: Status, reason: string, lost: boolean): DialError {
  if (lost || status.code === StatusCode.UNAVAILABLE) {
    // A server that answers so has refused the call before it read it; a call
    // that it did read is answered in a message.
    const isUnprocessed = !lost || status.isUnprocessed === true;
    const loss = isUnprocessed ? "unprocessed" : "unanswered";
    return new DialError("link-lost", reason, {
      loss,
      code: status.tunnelCode,
    });
  }
  if (status.code === StatusCode.DEADLINE_EXCEEDED) {
    return new DialError("timeout", reason, { code: status.tunnelCode });
  }
  return new DialError(
    "endpoint",
    status.code === StatusCode.OK
      ? "the call ended before the dial was answered"
      : reason,
    { code: status.tunnelCode },
  );
}
