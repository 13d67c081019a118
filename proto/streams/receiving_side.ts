/**
 * What all streams of a connection share when they receive: the connection's
 * window, the tuning of all windows, and the process's budget.
 *
 * @module
 */

import type { DataFrame } from "../frames/frame.ts";
import { ErrorCode, WireError } from "../frames/wire_error.ts";
import type { Clock } from "../sync/clock.ts";
import type { BulkSense } from "./bulk_sense.ts";
import type { EngineStream } from "./engine_stream.ts";
import { ReceiveWindow, WINDOW_BYTES_DEFAULT } from "./flow_window.ts";
import type { FrameWriter } from "./frame_writer.ts";
import { type Liveness, type PathRtt, RTT_NOISE_MS } from "./liveness.ts";
import type { BudgetMember, ReceiveBudget } from "./receive_budget.ts";
import type { LocalSettings } from "./settings.ts";
import type { StreamTable } from "./stream_table.ts";
import { type TunedConnection, WindowTuner } from "./window_tuner.ts";

/** What a `ReceivingSide` is made of. */
interface ReceivingParts {
  readonly local: LocalSettings;
  readonly writer: FrameWriter;
  readonly streams: StreamTable;
  readonly liveness: Liveness;
  readonly clock: Clock;
  readonly budget: ReceiveBudget;
  readonly bulk: BulkSense<EngineStream>;
}

export class ReceivingSide implements BudgetMember {
  readonly #window: ConnectionWindow;
  readonly #tuner: WindowTuner;

  constructor(private readonly parts: ReceivingParts) {
    const { local, writer, liveness } = parts;
    this.#window = new ConnectionWindow(writer, liveness.rtt, local);
    this.#tuner = new WindowTuner({
      rtt: liveness.rtt,
      connection: this.#window,
      streamWindowMax: local.streamWindowMax,
      sendProbe: () => liveness.ping("probe"),
    });
  }

  /** Opens the connection's window: WINDOW_UPDATE behind our SETTINGS. */
  start(): void {
    this.#window.open();
    this.parts.budget.join(this);
  }

  /** The connection is over. */
  end(): void {
    this.parts.budget.leave(this);
  }

  budgeted(): Iterable<EngineStream> {
    return this.parts.streams.all();
  }

  /**
   * Charges a DATA frame to the connection's window.
   *
   * @throws {WireError} If the peer had no right to send it.
   */
  charge({ flowBytes }: DataFrame): void {
    const { receiveWindow } = this.#window;
    if (!receiveWindow.receive(flowBytes)) {
      throw new WireError(
        ErrorCode.FLOW_CONTROL_ERROR,
        "6.9.1",
        `Cannot accept ${flowBytes} bytes of DATA: ` +
          `the connection's window has ${receiveWindow.available}`,
      );
    }
    // Credit is returned on receipt: a stream's own window limits what it may
    // pin, and a stalled stream must not hold the others' credit.
    receiveWindow.release(flowBytes);
    this.#tuner.onReceived(flowBytes);
    if (this.#window.update()) {
      this.#tuner.onConnectionUsed(this.parts.clock.now());
    }
  }

  /** For the users that share a divided stream. */
  get budget(): ReceiveBudget {
    return this.parts.budget;
  }

  /** `stream` has charged `bytes` to its own window; it may be reset here. */
  received(stream: EngineStream, bytes: number): void {
    if (!stream.isDivided) this.parts.budget.received(stream, bytes);
  }

  /** `stream` passed on `bytes`. */
  consumed(stream: EngineStream, bytes: number): void {
    if (!stream.isDivided) this.parts.budget.consumed(stream, bytes);
    this.#tuner.onConsumed(stream, bytes);
  }

  /** Half of `stream`'s window was used up: `bytes`, announced again. */
  halfUsed(stream: EngineStream, bytes: number): void {
    const nowMs = this.parts.clock.now();
    this.parts.bulk.moved(stream, bytes, nowMs);
    this.#tuner.onHalfUsed(stream, nowMs);
  }

  /** `stream` is over. */
  closed(stream: EngineStream): void {
    this.parts.budget.closed(stream);
    this.parts.bulk.forget(stream);
    this.#tuner.onClosed(stream);
  }

  /** The PING of a round was answered. */
  probeAnswered(nowMs: number): void {
    this.#tuner.onProbeAnswer(nowMs);
  }
}

/** The connection's window: the granted size, and its target. */
class ConnectionWindow implements TunedConnection {
  readonly receiveWindow: ReceiveWindow = new ReceiveWindow(
    WINDOW_BYTES_DEFAULT,
  );
  readonly #size: ConnectionWindowSize;

  constructor(
    private readonly writer: FrameWriter,
    private readonly rtt: PathRtt,
    local: LocalSettings,
  ) {
    const { connectionWindow, connectionWindowMax } = local;
    this.#size = new ConnectionWindowSize(
      rtt,
      connectionWindow,
      connectionWindowMax,
    );
  }

  open(): void {
    this.#resize();
  }

  afterRound(bytes: number, nowMs: number): boolean {
    const before = this.receiveWindow.size;
    this.#size.onRound(bytes, this.rtt.lastMs ?? 0, nowMs);
    this.#resize();
    return this.receiveWindow.size > before;
  }

  /** Announces used credit; `false` while it is too little. */
  update(): boolean {
    const increment = this.receiveWindow.takeUpdate();
    this.#announce(increment);
    return increment > 0;
  }

  #resize(): void {
    const { receiveWindow } = this;
    const isLarger = this.#size.bytes > receiveWindow.size;
    receiveWindow.resize(this.#size.bytes);
    if (isLarger) this.#announce(receiveWindow.takeAll());
  }

  #announce(increment: number): void {
    if (increment > 0) this.writer.windowUpdate(0, increment);
  }
}

// How large the connection's receive window should be: enough to keep the path
// full, and little more, for whatever is granted beyond that waits in a queue,
// in the kernel or on the line, in front of everything that comes later.
//
// Each round trip shows how many bytes came and how long it took. While they
// fill half of the window and no queue builds up, the window grows. When round
// trips get longer, the window becomes what the path carried lately in a round
// trip without queues, plus some room for repetitions after a loss. Credit
// comes back on receipt, so a window becomes smaller by giving none for a
// while.
//
// Other traffic may fill the line's queue too. So when the least round trip was
// not seen for long, the window is halved for a few rounds: if the queue stays,
// it is not ours, and counts as part of the path. (BBR's ProbeRTT, from the
// receiving end.)

/** The window never gets smaller: two frames of ours. */
export const CONNECTION_WINDOW_BYTES_MIN: number = 128 * 1024;

/**
 * The part of the window beyond the path's content; a lost packet delays
 * everything after it.
 */
const HEADROOM = 1.5;

/** Growth per round trip until the first queue was seen, and after it. */
const FIRST_GROWTH = 2;
const LATER_GROWTH = 1.25;

/** A window that makes round trips so much longer than the least is enough. */
const QUEUE_RATIO = 1.25;

/** Rounds over which the rate is taken: a loss holds bytes up, then they burst. */
const RATE_ROUNDS = 8;

/** One round to use up granted credit, two rounds to measure. */
const DRAIN_ROUNDS = 3;

interface Round {
  readonly bytes: number;
  readonly ms: number;
}

export class ConnectionWindowSize {
  readonly #rounds: Round[] = [];
  #bytes: number;
  #growth = FIRST_GROWTH;
  #drainRoundsLeft = 0;

  /**
   * @param bytes Where it starts.
   * @param bytesMax How far it may grow.
   */
  constructor(
    private readonly rtt: PathRtt,
    bytes: number,
    private readonly bytesMax: number,
  ) {
    this.#bytes = bytes;
  }

  /** What the window should be now. */
  get bytes(): number {
    if (this.#drainRoundsLeft === 0) return this.#bytes;
    return Math.max(CONNECTION_WINDOW_BYTES_MIN, this.#bytes / 2);
  }

  /** The window is made smaller to measure the path without our queue. */
  get isDraining(): boolean {
    return this.#drainRoundsLeft > 0;
  }

  /** A round trip of `rttMs` is over, in which `bytes` came. */
  onRound(bytes: number, rttMs: number, nowMs: number): void {
    if (this.#rounds.length === RATE_ROUNDS) this.#rounds.shift();
    this.#rounds.push({ bytes, ms: rttMs });
    if (this.#drainRoundsLeft > 0) {
      this.#drainRoundsLeft--;
      return;
    }
    // A peer that sends less than the window allows is not held back by it, and
    // the queue is not of its making.
    const used = Math.max(bytes, this.#perTurn(bytes, rttMs));
    if (used * 2 < this.#bytes) return;
    if (this.rtt.isMinimumOld(nowMs)) return this.#drain();
    if (this.rtt.isInflated) this.#fit();
    else if (!this.#isQueueing(rttMs)) this.#grow(bytes, rttMs);
  }

  /**
   * Between this and inflation the window is right. One late answer is enough.
   */
  #isQueueing(rttMs: number): boolean {
    const { minMs } = this.rtt;
    return rttMs > minMs * QUEUE_RATIO && rttMs > minMs + RTT_NOISE_MS;
  }

  /**
   * What the path carries in a round trip and a turn of both event loops. On
   * loopback the round trip is shorter than such a turn, in which hundreds of
   * KiB are moved.
   */
  #perTurn(bytes: number, ms: number): number {
    const turnMs = Math.min(ms, this.rtt.minMs) + RTT_NOISE_MS;
    return ms > 0 ? bytes * turnMs / ms : bytes;
  }

  #grow(bytes: number, rttMs: number): void {
    const wanted = this.#perTurn(bytes, rttMs) * 2;
    const step = this.#bytes * this.#growth;
    this.#set(Math.max(this.#bytes, Math.min(wanted, step)));
  }

  /** The amount carried lately, without the queue. */
  #fit(): void {
    this.#growth = LATER_GROWTH;
    let [bytes, ms] = [0, 0];
    for (const round of this.#rounds) {
      bytes += round.bytes;
      ms += round.ms;
    }
    const wanted = this.#perTurn(bytes, ms) * HEADROOM;
    const less = Math.min(this.#bytes, wanted);
    this.#set(Math.max(less, this.#bytes / 2));
  }

  #drain(): void {
    this.#drainRoundsLeft = DRAIN_ROUNDS;
    this.rtt.forgetMinimum();
  }

  #set(bytes: number): void {
    this.#bytes = Math.round(
      Math.min(this.bytesMax, Math.max(CONNECTION_WINDOW_BYTES_MIN, bytes)),
    );
  }
}
