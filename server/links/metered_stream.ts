/**
 * Rations the work that an unauthenticated peer can cause, until it has proved
 * its identity.
 *
 * Each budget of the engine limits one kind of frame. This one limits their
 * common cost: time on the one processor that carries all other peers' bytes.
 * An unauthenticated peer's bytes are read in slices, with a turn for others
 * after each; the number of slices is limited; and their time is charged to the
 * peer's address.
 *
 * @module
 */

import { openLibc } from "../../net/libc/libc.ts";
import type { AdmittedConnection } from "../../net/admission/connection_limiter.ts";
import { UNAUTHENTICATED_BYTES_MAX } from "../../net/admission/connection_limits.ts";
import {
  type Stream,
  type StreamUser,
  WOULD_BLOCK,
} from "../../net/stream/stream.ts";
import { StreamLayer } from "../../net/stream/stream_layer.ts";
import { ErrorCode } from "../../proto/frames/wire_error.ts";
import type { Connection } from "../../proto/streams/connection.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";

/**
 * Fifty of the smallest frames, each refused with a message of its own: a
 * millisecond or two in the worst case.
 */
export const SLICE_BYTES = 512;

/**
 * How much it may still send after a refusal: bytes that were on their way. All
 * bytes must be decrypted before they can be dropped, which is the more
 * expensive half of a flood, so the rest is not read.
 */
export const LATE_BYTES_MAX: number = 32 * 1024;

/** The refusal has left the process by then. */
const FLUSH_MS = 5;

/** The part of `AdmittedConnection` that is charged. */
export type Charged = Pick<
  AdmittedConnection,
  "isUnauthenticated" | "takeWork" | "takeBytes" | "linger"
>;

/**
 * @param over It was too much; called once, nothing more is read.
 * @param computedMs What this thread has computed until now.
 */
export function meteredStream(
  stream: Stream,
  admitted: Charged,
  timers: Timers,
  over: (reason: string) => void,
  computedMs: () => number = threadMs,
): Stream {
  if (!admitted.isUnauthenticated) return stream;
  return new MeteredStream(stream, admitted, timers, over, computedMs);
}

const CLOCK_THREAD_CPUTIME_ID = 3;
const timespec = new BigInt64Array(2);
const timespecBytes = new Uint8Array(timespec.buffer);

/**
 * Time in which other programs have the processor is no work: beside fifty of
 * them a node's first request took a second, and the node was sent away. (What
 * the platform knows of a thread it learns at each tick, every 10 ms.)
 */
function threadMs(): number {
  const library = openLibc();
  if (library === undefined) return performance.now();
  library.clock_gettime(CLOCK_THREAD_CPUTIME_ID, timespecBytes);
  return Number(timespec[0]) * 1e3 + Number(timespec[1]) / 1e6;
}

class MeteredStream extends StreamLayer implements StreamUser {
  #user: StreamUser | undefined;
  /** What may still be read in this turn. */
  #left = 0;
  /** More was asked for than that. */
  #wantsMore = false;
  #timer: Timer | undefined;
  /** Once it is over: how much came all the same. */
  #lateBytes: number | undefined;

  constructor(
    stream: Stream,
    private readonly admitted: Charged,
    private readonly timers: Timers,
    private readonly over: (reason: string) => void,
    private readonly computedMs: () => number,
  ) {
    super(stream);
    stream.notify(this);
  }

  override notify(user: StreamUser): void {
    this.#user = user;
  }

  onReady(hint: number): void {
    if (!this.below.isOpen) this.#timer?.cancel();
    if (!this.#isMetered) return this.#user?.onReady(hint);
    const startMs = this.computedMs();
    this.#left = SLICE_BYTES;
    this.#wantsMore = false;
    this.#user?.onReady(hint);
    this.#left = 0;
    const ms = this.computedMs() - startMs;
    if (this.#isMetered && !this.admitted.takeWork(ms)) {
      this.#end("unauthenticated peers from there made too much work");
    }
    if (this.#wantsMore) this.goOn();
  }

  onFault(): void {
    if (this.#user === undefined) this.reset();
    else this.#user.onFault();
  }

  override read(into: Uint8Array<ArrayBuffer>): number {
    if (this.#lateBytes !== undefined) return this.#drop(into);
    if (!this.#isMetered) return this.below.read(into);
    if (this.#left === 0) return this.#readLater();
    const count = this.below.read(into.subarray(0, this.#left));
    if (count <= 0) return count;
    this.#left -= count;
    if (this.admitted.takeBytes(count)) return count;
    this.#end(
      `it sent more than ${UNAUTHENTICATED_BYTES_MAX} bytes, and not who it is`,
    );
    return WOULD_BLOCK;
  }

  get #isMetered(): boolean {
    return this.admitted.isUnauthenticated && this.#lateBytes === undefined;
  }

  #readLater(): number {
    // A peer that reads out of turn gets the next turn.
    if (!this.#wantsMore) this.goOn();
    this.#wantsMore = true;
    return WOULD_BLOCK;
  }

  #end(reason: string): void {
    this.#lateBytes = 0;
    this.over(reason);
    this.goOn();
  }

  #drop(into: Uint8Array<ArrayBuffer>): number {
    while (this.#lateBytes! <= LATE_BYTES_MAX) {
      const count = this.below.read(into);
      if (count <= 0) return count;
      this.#lateBytes! += count;
    }
    this.#timer ??= this.timers.after(FLUSH_MS, () => {
      this.admitted.linger();
      this.close();
    });
    return WOULD_BLOCK;
  }
}

// Ends connections of the agent port that hold a place and use it for nothing.
//
// A client that has business there calls at once: to link, to join, to renew, to
// ask for health. Without a call a connection costs the server memory and a
// descriptor, and its client nothing.

/** How often it is looked, and how long there may be no call. */
export const IDLE_CHECK_MS = 5_000;

/**
 * How long a peer may stay without proving its identity, with or without calls.
 * A token is reviewed in ten seconds, and joining takes less.
 */
export const UNAUTHENTICATED_LIFE_MS = 30_000;

/** The part of `Connection` that is watched. */
type WatchedConnection = Pick<Connection, "openStreams" | "abort">;

/** The knowledge about a connection's peer. */
export interface IdleWatchOptions {
  readonly timers: Timers;
  /** It has not proved its identity yet. */
  isUnauthenticated(): boolean;
  /** How long there may be no call; {@linkcode IDLE_CHECK_MS} unless given. */
  readonly idleMs?: number | undefined;
  /** It ends; for the log and the metrics. */
  ended(reason: string): void;
}

/** @returns How to stop watching. */
export function watchIdle(
  connection: WatchedConnection,
  { timers, isUnauthenticated, ended, idleMs = IDLE_CHECK_MS }:
    IdleWatchOptions,
): () => void {
  const startMs = timers.now();
  /** Since which look there has been no call. */
  let idleSinceMs = Infinity;
  let timer: Timer;
  const end = (reason: string) => {
    ended(reason);
    connection.abort(ErrorCode.NO_ERROR, reason);
  };
  const look = () => {
    const nowMs = timers.now();
    if (connection.openStreams > 0) idleSinceMs = Infinity;
    else if (idleSinceMs === Infinity) idleSinceMs = nowMs;
    if (nowMs - idleSinceMs >= idleMs) {
      return end(`no call was open for ${idleMs / 1_000} s`);
    }
    if (isUnauthenticated() && nowMs - startMs >= UNAUTHENTICATED_LIFE_MS) {
      return end(
        `it did not show who it is for ${UNAUTHENTICATED_LIFE_MS / 1_000} s`,
      );
    }
    timer = timers.after(IDLE_CHECK_MS, look);
  };
  timer = timers.after(IDLE_CHECK_MS, look);
  return () => timer.cancel();
}
