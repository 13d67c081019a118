/**
 * A stream inside the engine: `Stream` for the layer above, and the receiving
 * half that `frame_receiver.ts` drives.
 *
 * It owns what belongs to one stream alone (state, windows, order of header
 * sections) and asks its {@linkcode StreamHost} for everything that is shared.
 * Handlers are the last thing each method calls, or the state is looked at
 * again afterwards: a handler may do anything, also end this stream.
 *
 * It is long because both directions share one state and one end. What needs
 * neither has files of its own: `incoming_message.ts` for the order and length
 * of what comes, `stream_state.ts` for the table of states applied.
 *
 * @module
 */

import { ErrorCode, WireError } from "../frames/wire_error.ts";
import type { HeaderField } from "../hpack/header_field.ts";
import { INTERNAL_ERROR, reportFault } from "../sync/faults.ts";
import type { ClosedHow } from "./stream_table.ts";
import { ReceiveWindow, SendWindow } from "./flow_window.ts";
import type { SectionFacts } from "./header_sections.ts";
import { IncomingMessage, type IncomingSection } from "./incoming_message.ts";
import type { Budgeted, ReceiveBudget } from "./receive_budget.ts";
import type { Stream, StreamEvents, StreamReset } from "./stream.ts";
import type { StreamHost } from "./stream_host.ts";
import {
  nextStreamState,
  type StreamInput,
  type StreamState,
} from "./stream_state.ts";
import type { TunedWindow } from "./window_tuner.ts";
import type { WaitingSender } from "./sending_side.ts";

/** Below this average frame a stream counts as one that sends little. */
const SPARSE_FRAME_BYTES = 4096;

const EMPTY = new Uint8Array(0);

/** What a client's stream keeps while it waits for its turn to be opened. */
interface PendingRequest {
  readonly fields: readonly HeaderField[];
  endStream: boolean;
  trailers: readonly HeaderField[] | undefined;
}

export class EngineStream
  implements Stream, TunedWindow, Budgeted, WaitingSender {
  // Both get their size with the stream's id.
  readonly receiveWindow: ReceiveWindow = new ReceiveWindow(0);
  readonly sendWindow: SendWindow = new SendWindow(0);
  roundBytes = 0;
  round = 0;
  hasUsedHalf = false;
  halfUsedMs = 0;
  progressTick = 0;
  /** The users that share the stream report to the budget, not the stream. */
  isDivided = false;
  #events: StreamEvents | undefined;
  #id = 0;
  #state: StreamState = "idle";
  #pending: PendingRequest | undefined;
  /** The final head went out; for a client with the request. */
  #hasSentHead = false;
  readonly #incoming = new IncomingMessage();
  #wantsRoom = false;
  /**
   * The reported part of the end: `due`: END_STREAM came, and the handler is
   * not notified yet; `left`: the host was notified that the stream is over.
   */
  #end: "none" | "due" | "left" = "none";
  #frameBytesAverage = 0;

  constructor(private readonly host: StreamHost) {}

  get id(): number {
    return this.#id;
  }

  get isClosed(): boolean {
    return this.#state === "closed";
  }

  /** The response has started, so that a reset no longer wastes our work. */
  get isAnswered(): boolean {
    return this.#hasSentHead;
  }

  // --- The life of a stream --------------------------------------------------

  /** Client role: keeps a request until {@linkcode activate}. */
  prepare(
    fields: readonly HeaderField[],
    endStream: boolean,
    events: StreamEvents,
  ): void {
    this.#events = events;
    this.#pending = { fields, endStream, trailers: undefined };
    this.#incoming.answers(fields);
  }

  /** Client role: the stream gets its id and the request goes out. */
  activate(id: number): void {
    const request = this.#pending!;
    const { fields, endStream, trailers } = request;
    this.#pending = undefined;
    this.#begin(id, true);
    // The peer may have changed its mind while the request waited.
    const problem = this.host.problemOfHeaders(fields);
    if (problem !== undefined) return this.finish(unsendable(problem));
    this.#hasSentHead = true;
    this.#input("sendHeaders");
    this.host.sending.writer.headers(id, fields, endStream, "bulk");
    if (endStream) this.#input("sendEnd");
    else if (trailers !== undefined) this.sendHeaders(trailers, true);
    else if (this.#wantsRoom) this.awaitRoom();
  }

  /** Server role: a request came. The handlers are set before it is delivered. */
  accept(id: number): void {
    this.#begin(id, false);
  }

  #begin(id: number, isOwn: boolean): void {
    this.#id = id;
    this.sendWindow.adjust(this.host.peerStartWindow());
    this.receiveWindow.shift(this.host.startWindow(isOwn));
  }

  setEvents(events: StreamEvents): void {
    this.#events = events;
  }

  /** Ends the stream without a frame: the connection knows why, and goes on. */
  finish(reset: StreamReset): void {
    if (this.#end === "left") return;
    this.#state = "closed";
    this.#leave("resetByUs");
    this.#tellReset(reset);
  }

  // --- Sending ---------------------------------------------------------------

  sendHeaders(fields: readonly HeaderField[], endStream: boolean): void {
    if (this.#state === "closed") return;
    if (this.#pending !== undefined) {
      this.#keepTrailers(this.#pending, fields, endStream);
      return;
    }
    const isTrailers = this.#hasSentHead;
    if (isTrailers && !endStream) {
      throw new TypeError("Cannot send trailers that do not end the stream");
    }
    const problem = this.host.problemOfHeaders(fields);
    if (problem !== undefined) {
      const { code, reason } = unsendable(problem);
      return this.fail(code, reason);
    }
    if (!isTrailers && !isInformational(fields)) {
      this.#hasSentHead = true;
      this.host.onAnswered();
    }
    this.#input("sendHeaders");
    this.host.sending.writer.headers(this.#id, fields, endStream, "control");
    if (endStream) this.#sentEnd();
  }

  get room(): number {
    if (!this.#maySendData || this.host.sending.scheduler.isTurnOver(this)) {
      return 0;
    }
    const shared = this.host.sending.room;
    const own = this.sendWindow.available;
    return own < shared ? Math.max(0, own) : shared;
  }

  get windowBytes(): number {
    const shared = this.host.sending.window.available;
    return Math.max(0, Math.min(shared, this.sendWindow.available));
  }

  sendFrame(head: Uint8Array, body: Uint8Array, endStream = false): void {
    const bytes = head.length + body.length;
    if (bytes === 0) {
      if (endStream) this.end();
      return;
    }
    const { room } = this;
    if (bytes > room) {
      throw new RangeError(
        `Cannot send a frame of ${bytes} bytes: there is room for ${room}`,
      );
    }
    this.sendWindow.spend(bytes);
    this.host.sending.sent(this, bytes);
    this.#frameBytesAverage += (bytes - this.#frameBytesAverage) / 4;
    this.host.sending.writer.data(this.#id, head, body, endStream);
    if (endStream) this.#sentEnd();
  }

  write(chunk: Uint8Array): number {
    let taken = 0;
    while (taken < chunk.length) {
      const bytes = Math.min(this.room, chunk.length - taken);
      if (bytes === 0) {
        this.awaitRoom();
        break;
      }
      const whole = taken === 0 && bytes === chunk.length;
      this.sendFrame(
        EMPTY,
        whole ? chunk : chunk.subarray(taken, taken + bytes),
      );
      taken += bytes;
    }
    return taken;
  }

  awaitRoom(): void {
    if (this.#state === "closed") return;
    this.#wantsRoom = true;
    if (this.#maySendData && this.hasWindow) this.host.sending.awaitRoom(this);
  }

  end(): void {
    if (this.#state === "closed") return;
    if (this.#pending !== undefined) {
      this.#pending.endStream = true;
      return;
    }
    if (!this.#hasSentHead) {
      throw new TypeError("Cannot end a stream without a header section");
    }
    this.#input("sendData");
    this.host.sending.writer.data(this.#id, EMPTY, EMPTY, true);
    this.#sentEnd();
  }

  reset(code: number): void {
    if (this.#end === "left") return;
    this.#abandon(code);
    this.host.onStreamOver();
  }

  /** Over the process's budget: see `Budgeted`. */
  giveUp(reason: string): void {
    this.fail(ErrorCode.ENHANCE_YOUR_CALM, reason);
  }

  /** Resets the stream for a mistake of the peer's, and reports that. */
  fail(code: number, reason: string): void {
    if (this.#end === "left") return;
    this.#abandon(code);
    this.#tellReset({ by: "local", code, reason });
    this.host.onStreamOver();
  }

  /**
   * A handler threw: an internal error, which costs only this stream of the
   * connection.
   */
  faulted(error: unknown): void {
    reportFault("stream", error);
    this.fail(ErrorCode.INTERNAL_ERROR, INTERNAL_ERROR);
  }

  #tellReset(reset: StreamReset): void {
    try {
      this.#events?.onReset(reset);
    } catch (error) {
      reportFault("stream", error);
    }
  }

  #abandon(code: number): void {
    // Both ends may have ended while the last event is still being delivered.
    const isOnWire = this.#state !== "closed" && this.#id !== 0;
    if (isOnWire) this.host.sending.writer.rstStream(this.#id, code);
    this.#state = "closed";
    this.#leave(isOnWire ? "resetByUs" : "ended");
  }

  // --- Turns (see sending_side.ts) ----------------------------------------

  get hasWindow(): boolean {
    return this.sendWindow.available > 0;
  }

  get isSparse(): boolean {
    return this.#frameBytesAverage < SPARSE_FRAME_BYTES;
  }

  takeTurn(): void {
    if (!this.#wantsRoom || !this.#maySendData) return;
    this.#wantsRoom = false;
    try {
      this.#events?.onWritable();
    } catch (error) {
      this.faulted(error);
    }
  }

  // --- Receiving -------------------------------------------------------------

  /** A header section of any kind. `requestFacts` come with a request. */
  receiveHeaders(
    fields: readonly HeaderField[],
    endStream: boolean,
    requestFacts?: SectionFacts,
  ): void {
    this.#input("recvHeaders");
    if (endStream) this.#receiveEnd();
    const section = requestFacts === undefined
      ? this.#incoming.section(fields, endStream)
      : this.#incoming.request(requestFacts, endStream);
    this.#deliverSection(section, fields);
    if (endStream) this.#receivedEnd();
  }

  #deliverSection(
    section: IncomingSection,
    fields: readonly HeaderField[],
  ): void {
    if (section.kind === "malformed") throw this.#malformed(section.problem);
    try {
      if (section.kind === "head") {
        this.#events = this.#events?.onHeaders(fields) ?? this.#events;
      } else if (section.kind === "trailers") this.#events?.onTrailers(fields);
      else this.#events?.onInformational?.(fields);
    } catch (error) {
      this.faulted(error);
    }
  }

  /** The first piece of a DATA frame: whether it may come, and its credit. */
  receiveDataStart(flowBytes: number, paddingBytes: number): void {
    this.#input("recvData");
    if (!this.#incoming.hasHead) {
      throw this.#error(
        ErrorCode.PROTOCOL_ERROR,
        "8.1",
        "Cannot accept DATA in front of a response",
      );
    }
    if (!this.receiveWindow.receive(flowBytes)) {
      throw this.#error(
        ErrorCode.FLOW_CONTROL_ERROR,
        "6.9.1",
        `Cannot accept ${flowBytes} bytes of DATA: ` +
          `the window of stream ${this.#id} has ${this.receiveWindow.available}`,
      );
    }
    // Over the process's budget this stream may be reset in here.
    this.host.receiving.received(this, flowBytes);
    if (paddingBytes > 0) this.consumed(paddingBytes);
  }

  /** A piece of DATA; `endStream` with the last one of the stream. */
  receiveData(chunk: Uint8Array, endStream: boolean): void {
    if (this.#state === "closed") return;
    const problem = this.#incoming.body(chunk.length, endStream);
    if (problem !== undefined) throw this.#malformed(problem);
    if (endStream) this.#receiveEnd();
    try {
      if (chunk.length > 0) this.#events?.onData(chunk);
    } catch (error) {
      this.faulted(error);
    }
    if (endStream) this.#receivedEnd();
  }

  consumed(bytes: number): void {
    if (this.#state === "closed") return;
    this.receiveWindow.release(bytes);
    this.host.receiving.consumed(this, bytes);
    // A peer that has ended needs no more credit.
    if (this.#state === "halfClosedRemote") return;
    const increment = this.receiveWindow.takeUpdate();
    if (increment === 0) return;
    this.host.sending.writer.windowUpdate(this.#id, increment);
    this.host.receiving.halfUsed(this, increment);
  }

  get waitingBytes(): number {
    return this.isDivided ? 0 : this.receiveWindow.outstanding;
  }

  divideBudget(): ReceiveBudget {
    if (this.receiveWindow.outstanding > 0) {
      throw new TypeError("Cannot divide a stream that has received data");
    }
    this.isDivided = true;
    return this.host.receiving.budget;
  }

  growWindow(bytes: number): void {
    this.receiveWindow.grow(bytes);
    if (this.#state === "closed" || this.#state === "halfClosedRemote") return;
    const increment = this.receiveWindow.takeAll();
    if (increment > 0) {
      this.host.sending.writer.windowUpdate(this.#id, increment);
    }
  }

  /** RST_STREAM from the peer. */
  receiveReset(code: number, reason: string): void {
    this.#input("recvReset");
    this.#leave("resetByPeer");
    const by = code === ErrorCode.REFUSED_STREAM ? "refused" : "peer";
    this.#tellReset({ by, code, reason });
    this.host.onStreamOver();
  }

  /** WINDOW_UPDATE, or a change of the peer's INITIAL_WINDOW_SIZE. */
  adjustSendWindow(bytes: number): boolean {
    if (!this.sendWindow.adjust(bytes)) return false;
    if (this.#wantsRoom) this.awaitRoom();
    return true;
  }

  /** An error of the peer's that ends this stream only. */
  #error(code: ErrorCode, section: string, message: string): WireError {
    return new WireError(code, section, message, {
      scope: "stream",
      streamId: this.#id,
    });
  }

  #malformed(problem: string): WireError {
    return this.#error(
      ErrorCode.PROTOCOL_ERROR,
      "8.1.1",
      `Cannot accept stream ${this.#id}: ${problem}`,
    );
  }

  /** The state changes before the handlers run, and they are notified last. */
  #receiveEnd(): void {
    this.#input("recvEnd");
    this.#end = "due";
  }

  #receivedEnd(): void {
    if (this.#end === "left") return; // A handler has reset it.
    this.#end = "none";
    try {
      this.#events?.onEnd();
    } catch (error) {
      this.faulted(error);
    }
    if (this.#state === "closed") this.#leaveInOrder();
  }

  // --- State -----------------------------------------------------------------

  get #maySendData(): boolean {
    return this.#hasSentHead &&
      (this.#state === "open" || this.#state === "halfClosedRemote");
  }

  #sentEnd(): void {
    this.#input("sendEnd");
    this.host.sending.scheduler.remove(this);
    if (this.#state === "closed" && this.#end !== "due") this.#leaveInOrder();
  }

  #input(input: StreamInput): void {
    this.#state = nextStreamState(this.#id, this.#state, input);
  }

  #leaveInOrder(): void {
    this.#leave("ended");
    this.host.onStreamOver();
  }

  /** Notifies the host, once, that nothing more will happen here. */
  #leave(how: ClosedHow): void {
    if (this.#end === "left") return;
    this.#end = "left";
    this.#pending = undefined;
    this.host.sending.scheduler.remove(this);
    this.host.onStreamClosed(this, how);
  }

  #keepTrailers(
    pending: PendingRequest,
    fields: readonly HeaderField[],
    endStream: boolean,
  ): void {
    if (!endStream || pending.endStream) {
      throw new TypeError("Cannot send trailers that do not end the stream");
    }
    pending.trailers = fields;
  }
}

function isInformational(fields: readonly HeaderField[]): boolean {
  return fields[0]?.name === ":status" && fields[0].value.startsWith("1");
}

/** The end of a stream whose header section the peer would not take. */
function unsendable(problem: string): StreamReset {
  return {
    by: "local",
    code: ErrorCode.INTERNAL_ERROR,
    reason: `Cannot send the header section: ${problem}`,
  };
}
