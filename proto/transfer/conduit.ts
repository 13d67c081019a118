/**
 * One end of a tunneled connection, whatever carries it.
 *
 * A TCP socket, a UDP flow, a stream of the streams carrier and a connection
 * inside the packets carrier all look like this, so one transfer loop joins any
 * two of them. Calls and events are synchronous.
 *
 * Backpressure, both ways, in bytes:
 * - outgoing: `write` takes what it can; after `onWritable` offer more;
 * - incoming: whatever `onData` delivered must be answered with `consumed`. A
 *   conduit delivers no more than its window (or its one read buffer) ahead of
 *   what was consumed, so a stalled reader stalls the sender, hop by hop.
 *
 * @module
 */

/** How a conduit ended. The three are never confused (ARCHITECTURE.md, promise 1). */
export type ConduitEnd =
  /** Both directions were closed in order. */
  | { readonly kind: "clean" }
  /** One end gave it up on purpose: TCP RST, RST_STREAM, a refused rule. */
  | { readonly kind: "reset"; readonly reason: string }
  /** The connection broke: link lost, process killed, timeout. */
  | { readonly kind: "lost"; readonly reason: string };

/** What the owner of a conduit is notified of. */
export interface ConduitEvents {
  /**
   * Bytes that wait in both directions of a transfer, if this is part of one.
   */
  readonly queuedBytes?: number;
  /**
   * A piece of the byte stream, or exactly one datagram.
   *
   * `chunk` is a view that is valid only during the call: copy what you keep.
   */
  onData(chunk: Uint8Array): void;
  /** `write` may take bytes again after it took less than it was offered. */
  onWritable(): void;
  /**
   * The other end will send no more (its half-close); ours may go on.
   *
   * @param isGone It has closed both directions in order: it reads nothing more
   *   either, and what is still written is dropped.
   */
  onEnd(isGone?: boolean): void;
  /**
   * It is over and every resource is free. The last event, exactly once; also
   * after a `reset` of our own making. `clean` comes only after `onEnd` and
   * `end()`, once everything written has left.
   */
  onClose(end: ConduitEnd): void;
}

/** The present state of a conduit, made for each request. */
export interface ConduitState {
  /** Delivered and not passed on yet: the reader is slow. */
  readonly unreadBytes: number;
  /** Written, and waiting here for the way to the other end. */
  readonly unsentBytes: number;
  /** It took less than was offered, and `onWritable` has not come since. */
  readonly isFull: boolean;
  /** What may be sent before the other end gives leave again. */
  readonly windowBytes?: number | undefined;
}

/** One end of a tunneled connection, or of a flow of datagrams. */
export interface Conduit {
  /** True when `onData` and `write` carry whole datagrams, never parts. */
  readonly datagrams: boolean;

  /** Absent when unknown. For people who ask, not for the hot path. */
  readonly state?: ConduitState | undefined;

  /**
   * Sets the receiver of the events. Called once, before any event can happen.
   */
  attach(events: ConduitEvents): void;

  /**
   * Offers bytes. They are copied; `chunk` is free when this returns.
   *
   * @returns How many were taken: all, some or none. A datagram is taken whole
   *   or dropped (UDP promises nothing), and its length is returned either way.
   *   Without a reader, only a limited number of bytes is taken in one turn of
   *   the event loop, and `onWritable` comes in another: an endless writer must
   *   not keep the loop busy.
   */
  write(chunk: Uint8Array): number;

  /**
   * Half-close: nothing more will be written; what was taken still leaves.
   *
   * @param isGone The other end's bytes have no reader any more. A peer without
   *   half-close then needs no time to answer.
   */
  end(isGone?: boolean): void;

  /**
   * Gives up both directions at once; what is queued is dropped.
   *
   * @param reason One sentence for people.
   * @param kind `lost` when the connection broke behind the caller, so that a
   *   loss stays a loss over any number of hops. A conduit whose protocol has
   *   no word for it resets.
   */
  reset(reason: string, kind?: "reset" | "lost"): void;

  /** Answers `onData`: these bytes were passed on. */
  consumed(bytes: number): void;
}

// The reset reason of a UDP target that refuses datagrams, the same on every
// hop.
//
// ICMP reaches the machine that sent the datagram, which may be an agent's. The
// client that chose the target may be at the other end of a tunnel, and can
// choose another: so the flow is reset with this reason, and no hop changes it
// (SPEC.md).

/** The reason of the reset; also what ECONNREFUSED is called. */
export const REFUSED_REASON = "connection refused";

/** How the flow to a target that refuses ends. */
export const REFUSAL: ConduitEnd = { kind: "reset", reason: REFUSED_REASON };

/** Whether a flow ended so, here or behind a tunnel. */
export function isRefusal(
  end: ConduitEnd,
): end is Extract<ConduitEnd, { kind: "reset" }> {
  return end.kind === "reset" && end.reason === REFUSED_REASON;
}
