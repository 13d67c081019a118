/**
 * How a connection lives and ends (RFC 9113 §5.4.1 and §6.8): its phases, the
 * two steps of a drain, GOAWAY of either side, and what all of that means for
 * the streams there are.
 *
 * Every stream gets its end before the connection's owner gets the
 * connection's.
 *
 * @module
 */

import { type GoawayFrame, UINT31_MAX } from "../frames/frame.ts";
import {
  ErrorCode,
  errorCodeName,
  type WireError,
} from "../frames/wire_error.ts";
import type { Clock } from "../sync/clock.ts";
import type {
  ConnectionEnd,
  ConnectionEvents,
  GoawayInfo,
  Role,
} from "./connection_events.ts";
import type { EngineStream } from "./engine_stream.ts";
import type { Liveness } from "./liveness.ts";
import type { ReceivingSide } from "./receiving_side.ts";
import type { SendingSide } from "./sending_side.ts";
import type { StreamReset } from "./stream.ts";
import type { StreamTable } from "./stream_table.ts";
import type { FrameWriter } from "./frame_writer.ts";

/** How long a drain waits for its PING before it sends which stream is last. */
export const DRAIN_ROUND_TRIP_MS = 5_000;

/** How long the last bytes of a connection may take to be written. */
export const CLOSE_LINGER_MS = 5_000;

/** The stage of a connection's life. `closed` may still have output. */
export type Phase = "new" | "running" | "draining" | "closed";

/** Why a connection that is not running opens no stream. */
const UNUSABLE_PHASES: Readonly<Record<Exclude<Phase, "running">, string>> = {
  new: "the connection was not started",
  draining: "we are closing the connection",
  closed: "the connection is closed",
};

/** What a `ConnectionLife` is made of. */
interface LifeParts {
  readonly role: Role;
  readonly clock: Clock;
  readonly events: ConnectionEvents;
  readonly streams: StreamTable;
  readonly sending: SendingSide;
  readonly receiving: ReceivingSide;
  readonly liveness: Liveness;
  /** The connection is over: nothing that is incomplete will be completed. */
  readonly dropIncomplete: () => void;
}

export class ConnectionLife {
  readonly #goaway: GoawayState;
  #phase: Phase = "new";
  #drainReason = "";
  #drainDeadlineMs = Infinity;
  #lingerDeadlineMs = Infinity;

  constructor(private readonly parts: LifeParts) {
    this.#goaway = new GoawayState(parts.sending.writer, parts.streams);
  }

  get isClosed(): boolean {
    return this.#phase === "closed";
  }

  /** Our side has not begun to end the connection. */
  get isRunning(): boolean {
    return this.#phase === "running";
  }

  /** Streams of the peer's above this id are ignored. */
  get peerIdMax(): number {
    return this.#goaway.peerIdMax;
  }

  /** Why no stream can be opened; `undefined` when one can. */
  get unusableReason(): string | undefined {
    if (this.#phase !== "running") return UNUSABLE_PHASES[this.#phase];
    return this.#goaway.peer === undefined
      ? undefined
      : "the peer is closing the connection (GOAWAY)";
  }

  /** When {@linkcode onDeadline} is due. */
  get nextDeadlineMs(): number {
    return this.isClosed ? this.#lingerDeadlineMs : this.#drainDeadlineMs;
  }

  /** Does all work that is due. */
  onDeadline(nowMs: number): void {
    if (nowMs < this.nextDeadlineMs) return;
    if (this.isClosed) this.#abandonOutput();
    else this.finishDrain();
  }

  start(): void {
    if (this.#phase !== "new") {
      throw new TypeError(`Cannot start a connection that is ${this.#phase}`);
    }
    this.#phase = "running";
  }

  // --- Ends of our making ----------------------------------------------------

  /** See `Connection.shutdown`. */
  shutdown(reason: string): void {
    if (this.#phase !== "running") return;
    const { role, clock, liveness } = this.parts;
    this.#phase = "draining";
    this.#drainReason = reason;
    if (role === "client") return this.finishDrain();
    this.#goaway.announce(reason);
    this.#drainDeadlineMs = clock.now() + DRAIN_ROUND_TRIP_MS;
    liveness.ping("drain");
  }

  /** The second step of a drain: streams opened until now are the last. */
  finishDrain(): void {
    this.#drainDeadlineMs = Infinity;
    if (this.#goaway.isFinal || this.#phase !== "draining") return;
    this.#goaway.sendFinal(this.#drainReason);
    this.#refuse(this.parts.streams.allPending(), this.#drainReason);
    this.endIfIdle();
  }

  /** See `Connection.abort`. */
  abort(code: number, reason: string): void {
    if (this.isClosed) return;
    this.#goaway.send(code, reason);
    this.#end({ reason, code, by: "local" });
  }

  /** The peer broke a rule that costs the connection (§5.4.1). */
  fail(error: WireError): void {
    if (this.isClosed) return;
    const { code, message: reason } = error;
    this.#goaway.send(code, reason);
    this.#end({ error, reason, code, by: "local" });
  }

  /** Ends an idle connection, if either side wants that. */
  endIfIdle(): void {
    const { role, streams } = this.parts;
    if (this.isClosed || streams.size + streams.pending > 0) return;
    const { peer, isFinal } = this.#goaway;
    if (this.#phase === "draining") {
      if (!isFinal) return;
      this.#end({ reason: this.#drainReason, code: 0, by: "local" });
    } else if (role === "client" && peer !== undefined) {
      // A client's own requests are all that keeps such a connection up; a
      // server leaves the closing to the client, which may still have some.
      const { code } = peer;
      this.#goaway.send(ErrorCode.NO_ERROR, "");
      this.#end({ reason: goawaySentence(peer), code, by: "peer" });
    }
  }

  // --- Ends that the peer decides --------------------------------------------

  /** GOAWAY of the peer's. */
  onGoaway(frame: GoawayFrame): void {
    const { streams, events } = this.parts;
    const info = this.#goaway.receive(frame);
    if (streams.localOpen + streams.pending > 0) {
      const unprocessed = streams.all().filter(({ id }) =>
        streams.isLocal(id) && id > info.lastStreamId
      );
      this.#refuse(
        [...streams.allPending(), ...unprocessed],
        goawaySentence(info),
      );
    }
    // A handler of those may have ended the connection.
    if (this.isClosed) return;
    events.onGoaway?.(info);
    this.endIfIdle();
  }

  /** @param isBetweenFrames The peer's last bytes were whole frames. */
  receiveEnd(isBetweenFrames: boolean): void {
    if (this.isClosed) return;
    const { streams } = this.parts;
    const openStreams = streams.size + streams.pending;
    const { peer } = this.#goaway;
    const reason = peer === undefined
      ? "the peer closed the connection"
      : goawaySentence(peer);
    const isClean = openStreams === 0 && isBetweenFrames;
    this.#end({
      reason,
      code: peer?.code ?? ErrorCode.NO_ERROR,
      by: "peer",
      ...(isClean ? {} : {
        error: new Error(
          `Cannot go on: ${reason} with ${openStreams} streams open`,
        ),
      }),
    });
  }

  /** The transport is gone, both ways. */
  transportClosed(error: Error | undefined): void {
    if (!this.isClosed) {
      this.#end({
        reason: error?.message ?? "the transport was closed",
        code: ErrorCode.NO_ERROR,
        by: "transport",
        error,
      });
    }
    this.#abandonOutput();
  }

  // --- What an end is --------------------------------------------------------

  #end(end: ConnectionEnd): void {
    const { clock, streams, sending, receiving, events } = this.parts;
    this.parts.dropIncomplete();
    this.#phase = "closed";
    this.#lingerDeadlineMs = clock.now() + CLOSE_LINGER_MS;
    const { code, reason } = end;
    for (const stream of streams.all()) {
      stream.finish({ by: "lost", code, reason });
    }
    this.#refuse(streams.allPending(), reason);
    receiving.end();
    sending.announce(); // So that the driver sees that we are finished.
    events.onClosed(end);
  }

  #abandonOutput(): void {
    this.#lingerDeadlineMs = Infinity;
    this.parts.sending.abandon();
  }

  /** Streams that the peer has certainly not processed (§8.7). */
  #refuse(streams: readonly EngineStream[], reason: string): void {
    const code = ErrorCode.REFUSED_STREAM;
    const reset: StreamReset = { by: "refused", code, reason };
    for (const stream of streams) stream.finish(reset);
  }
}

// GOAWAY in both directions (RFC 9113 §6.8): which streams still count when one
// end, or both, will take no more.

class GoawayState {
  /** The last stream of the peer's that we take; set by our final GOAWAY. */
  #peerIdMax = Infinity;
  #peer: GoawayInfo | undefined;

  constructor(
    private readonly writer: FrameWriter,
    private readonly streams: StreamTable,
  ) {}

  /** The peer's GOAWAY, if it sent one. */
  get peer(): GoawayInfo | undefined {
    return this.#peer;
  }

  /** Streams of the peer's above this id are ignored. */
  get peerIdMax(): number {
    return this.#peerIdMax;
  }

  /** We have sent which stream of the peer's is the last. */
  get isFinal(): boolean {
    return this.#peerIdMax !== Infinity;
  }

  /** Announces the end, and accepts streams that are under way. */
  announce(reason: string): void {
    this.writer.goaway(UINT31_MAX, ErrorCode.NO_ERROR, reason);
  }

  /** Sends the id of the last stream, without ending anything. */
  send(code: number, reason: string): void {
    const lastId = Math.min(this.streams.lastPeerId, this.#peerIdMax);
    this.writer.goaway(lastId, code, reason);
  }

  /** Sends it, and accepts no later stream. */
  sendFinal(reason: string): void {
    this.send(ErrorCode.NO_ERROR, reason);
    this.#peerIdMax = this.streams.lastPeerId;
  }

  /** Takes the peer's. */
  receive(frame: GoawayFrame): GoawayInfo {
    // It must not grow (§6.8); one that does is not believed.
    const lastStreamId = Math.min(
      frame.lastStreamId,
      this.#peer?.lastStreamId ?? UINT31_MAX,
    );
    const reason = decoder.decode(frame.debugData);
    return this.#peer = { lastStreamId, code: frame.errorCode, reason };
  }
}

/** One for all: each caller that closes in order sends a reason. */
const decoder = new TextDecoder();

/** The effect of a peer's GOAWAY on the streams that it refuses. */
function goawaySentence({ code, reason }: GoawayInfo): string {
  return `the peer said GOAWAY: ${errorCodeName(code)} ${reason}`;
}
