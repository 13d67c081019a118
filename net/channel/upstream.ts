/**
 * The servers that a channel leads to: the addresses, the transport and the
 * identity. It makes one connection for each call of `connect`, and keeps none.
 *
 * @module
 */

import type { Connection } from "../../proto/streams/connection.ts";
import type { Stream } from "../stream/stream.ts";

/** What requests name as their target. */
export interface RequestTarget {
  /** `:authority` */
  readonly authority: string;
  readonly scheme: "http" | "https";
}

export interface Upstream extends RequestTarget {
  /**
   * Connects to the next server that lets us.
   *
   * @param use Gets the stream, at once; `target`: where servers differ in that.
   *   What it throws or rejects with is a failure of that server.
   * @throws {Error} One sentence; the signal's reason.
   */
  connect<Result>(
    use: (stream: Stream, target?: RequestTarget) => Result,
    signal: AbortSignal,
  ): Promise<Result>;
  /**
   * Calls are made over this connection, whose server has answered: called for
   * each, and now and then for those that last.
   */
  used?(connection: Connection): void;
}
