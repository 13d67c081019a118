/**
 * The contract with the code that serves dials.
 *
 * @module
 */

import type { Metadata } from "../grpc/metadata.ts";
import type { Conduit } from "../transfer/conduit.ts";
import type { ConnectionId } from "../peer/connection_id.ts";
import type { DialError, DialTarget } from "../peer/dial_error.ts";
import type { TraceContext } from "../peer/trace_context.ts";
import type { PendingDial } from "./link.ts";

/** Where the outcome of a dial goes; exactly one of the two, once. */
export interface DialAnswer {
  /** Connected. `conduit` is not attached yet; the caller does that. */
  connected(conduit: Conduit): void;
  failed(error: DialError): void;
}

/** What is known about a dial besides its target. */
export interface DialContext {
  /** The metadata of the call; empty in the packets carrier. */
  readonly metadata: Metadata;
  /** What its DIAL_REQ carries; absent: the asker knows of no ids. */
  readonly id?: ConnectionId | undefined;
  /** The asker's span, where the carrier has a place for it. */
  readonly trace?: TraceContext | undefined;
  /**
   * Takes over what the caller has sent already, to send it ahead with the
   * dial. The taker delivers it, before anything else and once: it does not
   * come through the conduit again. Not taken, it comes as usual.
   */
  takeEarlyData(): Uint8Array;
}

/**
 * Dials a target. May answer before it returns.
 *
 * @returns `cancel`, called at most once and only before an answer; an answer
 *   that crosses it is harmless.
 */
export type DialHandler = (
  target: DialTarget,
  answer: DialAnswer,
  context: DialContext,
) => PendingDial;

/** Resets a conduit that is not wanted any more. */
export function abandon(conduit: Conduit, reason: string): void {
  conduit.attach({
    onData: () => {},
    onWritable: () => {},
    onEnd: () => {},
    onClose: () => {},
  });
  conduit.reset(reason);
}

/**
 * Makes a dial whose end is told first to somebody who watches it.
 *
 * @param over Called once: with why it failed, with what it led to, or with
 *   neither when the caller gave up.
 */
export function watchedDial(
  answer: DialAnswer,
  over: (end: { error?: DialError; conduit?: Conduit }) => void,
  dial: (answer: DialAnswer) => PendingDial,
): PendingDial {
  const pending = dial({
    connected(conduit) {
      over({ conduit });
      answer.connected(conduit);
    },
    failed(error) {
      over({ error });
      answer.failed(error);
    },
  });
  return {
    cancel() {
      over({});
      pending.cancel();
    },
    sendEarly: (bytes) => pending.sendEarly?.(bytes) ?? 0,
  };
}

/** A dial that fails at once. */
export function failedDial(answer: DialAnswer, error: DialError): PendingDial {
  answer.failed(error);
  return { cancel() {} };
}
