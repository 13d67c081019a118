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
import type { Liveness } from "./liveness.ts";
import type { BudgetMember, ReceiveBudget } from "./receive_budget.ts";
import type { LocalSettings } from "./settings.ts";
import type { StreamTable } from "./stream_table.ts";
import type { PathRtt } from "./path_rtt.ts";
import { ConnectionWindowSize } from "./connection_window_size.ts";
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
    // Given back on receipt: what a stream may pin is bounded by its own
    // window, and a stalled stream must not hold the others' credit.
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

/** The connection's window: what is granted, and how much that should be. */
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

  /** Announces what was used up; `false` while it is too little. */
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
