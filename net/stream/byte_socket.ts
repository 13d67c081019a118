/**
 * The smallest thing that every connected socket can do, whatever made it.
 *
 * `SocketConduit` and `socketTransport` ride on this, so they know nothing of
 * TLS, of unix paths or of the platform's several kinds of sockets.
 *
 * @module
 */

import { codeOf } from "../../platform/errors/error_code.ts";
import {
  INTERNAL_ERROR,
  isSlip,
  reportInternalError,
} from "../../platform/errors/internal_errors.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import type { ConduitEnd } from "../../proto/transfer/conduit.ts";
import type { PeerCredentials } from "../libc/peer_credentials.ts";

export type { PeerCredentials } from "../libc/peer_credentials.ts";

/** See the module description. One read and one write at a time. */
export interface ByteSocket {
  /** `ip:port`, `[ip6]:port`, a socket path, or `unix` for an unnamed peer. */
  readonly remoteAddress: string;
  readonly localAddress: string;
  /** What TLS negotiated; empty without TLS or ALPN. */
  readonly alpn: string;
  /** What a TLS client called us (SNI); absent or empty when it did not. */
  readonly serverName?: string;
  readonly identity: PeerIdentity;
  /** Who is at the other end of a unix socket, where that is told. */
  readonly peerCredentials?: PeerCredentials | undefined;

  /**
   * Waits for bytes and puts them into `into`, which must not be empty.
   *
   * @returns How many, or `null` when the peer has ended its side.
   * @throws What {@linkcode endOf} tells apart. Settles after `close` too.
   */
  read(into: Uint8Array): Promise<number | null>;

  /** Writes a first part of `bytes`; @returns how long it was. */
  write(bytes: Uint8Array): Promise<number>;

  /** Ends our side in order: FIN, and close_notify under TLS. */
  closeWrite(): Promise<void>;

  /** Frees the socket. What was written still leaves, if the peer takes it. */
  close(): void;

  /**
   * True when `close` alone ends our side in order, so that whoever ends second
   * need not call `closeWrite` first: one system call less per connection.
   */
  readonly closesInOrder: boolean;

  /** Frees the socket so that the peer sees a failure, where that is possible. */
  reset(): void;
}

/** Codes with which a kernel says that the peer gave the connection up. */
const RESET_CODES: ReadonlySet<string> = new Set([
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ENOTCONN",
]);

/**
 * Tells a reset (the peer gave up on purpose) from a loss (the road broke).
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
  const reason = error instanceof Error ? error.message : String(error);
  return { kind: "lost", reason };
}

/**
 * The same bytes without node's `Buffer` around them, whose `slice` makes a
 * view where everybody else's makes a copy.
 */
export function plainBytes(buffer: Uint8Array): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);
}

function isReset(error: unknown): boolean {
  return error instanceof Deno.errors.ConnectionReset ||
    error instanceof Deno.errors.ConnectionAborted ||
    error instanceof Deno.errors.BrokenPipe ||
    error instanceof Deno.errors.NotConnected ||
    RESET_CODES.has(codeOf(error));
}
