/**
 * A byte stream that is read and written without waiting: the one contract of
 * every connection, whatever it consists of.
 *
 * TCP, unix, the platform's sockets, TLS, a tunnel's conduit and a peeked
 * stream all are streams. A layer takes a stream and gives a stream: it is the
 * {@linkcode StreamUser} of the one below, or lets its own user be that. Code
 * that wants promises puts a `Socket` on it; code that moves bytes (a conduit,
 * HTTP/2) uses it directly, without a promise, a closure or a copy for each
 * read.
 *
 * @module
 */

import type { PeerCredentials } from "../libc/peer_credentials.ts";
import { codeOf, messageOf } from "../../platform/errors/error_code.ts";
import {
  guarded,
  INTERNAL_ERROR,
  isSlip,
  reportInternalError,
} from "../../platform/errors/internal_errors.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import type { ConduitEnd } from "../../proto/transfer/conduit.ts";

export type { PeerCredentials } from "../libc/peer_credentials.ts";

/** The result of `read` when there is neither a byte nor the end yet. */
export const WOULD_BLOCK = -1;

/** Reads and writes a stream. One at a time. */
export interface StreamUser {
  /**
   * There may be bytes to read, room to write, or an end, or another holder has
   * closed the stream. Called from the event loop or a microtask, never from
   * inside a call of the stream.
   *
   * @param hint Bits of `Ready`: the known changes. 0: there is none, it is
   *   only this user's turn again ({@linkcode Stream.goOn}).
   */
  onReady(hint: number): void;
  /**
   * `onReady` threw an internal error, which is reported already: the user ends
   * its object.
   */
  onFault(): void;
}

/**
 * How many bytes all streams together move before the event loop has its turn.
 * When many peers are faster than this process, reading and writing would
 * continue from microtask to microtask without end.
 */
export interface Turn {
  /** Bytes were read or written. */
  moved(bytes: number): void;
  /** Whether the rest should wait for the next turn. */
  readonly isOver: boolean;
  /** Runs `task` in the next turn. */
  later(task: () => void): void;
}

export interface Stream {
  /** `ip:port`, `[ip6]:port`, a socket path, or `unix` for an unnamed peer. */
  readonly remoteAddress: string;
  readonly localAddress: string;
  /** What TLS negotiated; empty without TLS or ALPN. */
  readonly alpn: string;
  /** The name in a TLS client's SNI; empty without one. */
  readonly serverName: string;
  /** The peer that TLS has verified; `ANONYMOUS` otherwise. */
  readonly identity: PeerIdentity;
  /**
   * The kernel's number, for options; `undefined` when the socket is the
   * platform's.
   */
  readonly descriptor: number | undefined;
  readonly turn: Turn;
  /** Neither `close` nor `reset` was called. */
  readonly isOpen: boolean;
  /**
   * `close` alone ends our side in order, so the side that ends second need not
   * call `closeWrite` first: one system call less for each connection.
   */
  readonly closesInOrder: boolean;
  /** Called once, when it is closed from here. Set by the acceptor. */
  onClosed: (() => void) | undefined;

  /** The process that made a unix connection (unix(7)), where that is known. */
  peerCredentials(): PeerCredentials | undefined;

  /**
   * Notifies `user` from now on, in place of the previous user.
   *
   * As with epoll's edges (epoll(7)) a user is notified of changes, not of
   * states: a new user tries first. After a `read` that would block, a `write`
   * without room or a `flush` that is not done, it is notified when that has
   * changed. It may be notified more often than that.
   */
  notify(user: StreamUser): void;

  /** The user has more to do than one turn allows: it is notified in the next. */
  goOn(): void;

  /**
   * Reads the available bytes.
   *
   * @param into Must not be empty.
   * @returns How many bytes, 0 at the peer's end (again and again), or
   *   {@linkcode WOULD_BLOCK}.
   * @throws The errors that `endOf` distinguishes: a system error or one of
   *   TLS, with its `code`; the stream was closed.
   */
  read(into: Uint8Array<ArrayBuffer>): number;

  /**
   * Writes as many bytes as there is room for; they are copied.
   *
   * @returns How many bytes were taken; 0 when there is no room.
   * @throws As `read`.
   */
  write(bytes: Uint8Array<ArrayBuffer>): number;

  /**
   * @returns Whether all that was taken has left, our end (`closeWrite`) too.
   * @throws As `read`.
   */
  flush(): boolean;

  /** Ends our side in order, after all written bytes. @throws As `read`. */
  closeWrite(): void;

  /**
   * Frees it. Accepted bytes that the kernel has still leave. Harmless a second
   * time. The user is notified, also when another holder has closed it.
   */
  close(): void;

  /** The same so that the peer sees a failure, where that is possible. */
  reset(): void;
}

/**
 * Notifies `user`, for streams that no poller notifies: an error that it throws
 * ends only this stream.
 */
export function notifyUser(user: StreamUser, hint: number): void {
  try {
    user.onReady(hint);
  } catch (error) {
    reportInternalError("socket", error);
    guarded("socket", () => user.onFault());
  }
}

/** The error of a closed stream, as of the platform's own sockets. */
export function closedError(): Error {
  return new Deno.errors.BadResource("the socket is closed");
}

/** Codes with which a kernel reports that the peer gave the connection up. */
const RESET_CODES: ReadonlySet<string> = new Set([
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ENOTCONN",
]);

/**
 * Distinguishes a reset (the peer gave up on purpose) from a loss (the
 * connection broke).
 *
 * @param error What a read or write of a socket was rejected with.
 */
export function endOf(error: unknown): ConduitEnd {
  if (isReset(error)) {
    return { kind: "reset", reason: "connection reset by peer" };
  }
  if (codeOf(error) === "ETIMEDOUT") {
    return { kind: "lost", reason: "connection timed out" };
  }
  // Its own words are an address of rustls's manual.
  if (error instanceof Deno.errors.UnexpectedEof) {
    return {
      kind: "lost",
      reason: "TLS connection was cut off without a goodbye",
    };
  }
  if (isSlip(error)) {
    reportInternalError("socket", error);
    return { kind: "lost", reason: INTERNAL_ERROR };
  }
  const reason = messageOf(error);
  return { kind: "lost", reason };
}

function isReset(error: unknown): boolean {
  return error instanceof Deno.errors.ConnectionReset ||
    error instanceof Deno.errors.ConnectionAborted ||
    error instanceof Deno.errors.BrokenPipe ||
    error instanceof Deno.errors.NotConnected ||
    RESET_CODES.has(codeOf(error));
}
