/**
 * The contract between a dialer and the code that makes its dials: over one
 * server, over several, or straight.
 *
 * @module
 */

import type { DialWishes } from "../proto/link/dial_wishes.ts";
import type { ConnectionId } from "../proto/peer/connection_id.ts";
import { DialError, type DialTarget } from "../proto/peer/dial_error.ts";
import type { TraceContext } from "../proto/peer/trace_context.ts";
import type { Conduit } from "../proto/transfer/conduit.ts";

/** One dial. */
export interface TunnelDial extends DialWishes {
  /** The wanted target and its options. */
  readonly target: DialTarget;
  /** The id for all programs on the way; made here unless given. */
  readonly id?: ConnectionId | undefined;
  /** The caller's span; the dial's span is its child. */
  readonly trace?: TraceContext | undefined;
  /**
   * What the caller has to say at once, at most `EARLY_BYTES_MAX` bytes;
   * saves a round trip where it can.
   */
  readonly earlyData?: Uint8Array | undefined;
  /** Gives the dial up. */
  readonly signal?: AbortSignal | undefined;
  /** `TUNNEL_DIAL_TIMEOUT_MS` unless given. */
  readonly timeoutMs?: number | undefined;
}

/** How one kind of route starts a dial. */
export interface DialStarter {
  /**
   * Starts a dial.
   *
   * @param onSending Called just before the caller's bytes leave, and again if
   *   they leave again; the `DialError` that it throws ends the dial instead.
   *   With it those bytes are not sent to a server that may have stopped: they
   *   follow the dial when the server has answered a PING.
   * @throws {DialError} The dial was answered, or lost on its way.
   * @throws {Error} The server was not reached: nothing was sent.
   */
  start(
    dial: TunnelDial,
    signal: AbortSignal,
    onSending?: () => void,
  ): Promise<Conduit>;
  /**
   * A dial has not been answered for long: asks whether the server is there at
   * all.
   *
   * @param why `for another`: a server that stays silent is disconnected, too.
   * @returns Whether it has sent anything since.
   */
  suspect?(why: "for another" | "for words"): () => boolean;
  /**
   * No server has said anything at all: it is not the target that is silent.
   *
   * @param waitedMs How long a dial has waited.
   */
  isUnheard?(waitedMs: number): boolean;
  close(): void;
}

/** Whether nothing goes with the dial that must not be said twice. */
export function saysNothing({ earlyData }: TunnelDial): boolean {
  return earlyData === undefined || earlyData.length === 0;
}

/**
 * The connection went, or its server is going, before there was an answer. The
 * client's bytes may have been delivered then, and must not be sent twice; a
 * connection to a target without bytes does no harm.
 *
 * @param hasSaid The client's bytes have left.
 */
export function canGoAgain(error: unknown, hasSaid: boolean): boolean {
  if (!(error instanceof DialError) || error.loss === undefined) return false;
  return error.loss === "unprocessed" || !hasSaid;
}
