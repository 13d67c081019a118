/**
 * A byte pipe to a peer: the one shape that every socket is brought into
 * before HTTP/2 rides on it.
 *
 * @module
 */

import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";

/** What the user of a transport hears. */
export interface TransportEvents {
  /** Bytes; a view that is valid only during the call. */
  onChunk(chunk: Uint8Array): void;
  /** The peer closed its sending side in order. */
  onEnd(): void;
  /** It is over (after both sides ended, on error or `close`). Exactly once. */
  onClose(error: Error | undefined): void;
}

/** See the module description. */
export interface Transport {
  /** `ip:port`, a socket path, or `unix` for an unnamed unix peer. */
  readonly remoteAddress: string;
  readonly localAddress: string;
  /** What TLS negotiated; empty without TLS or ALPN. */
  readonly alpn: string;
  readonly identity: PeerIdentity;
  /** Starts reading. Call once. */
  start(events: TransportEvents): void;
  /**
   * Writes all of `bytes`, then calls `done`. One write at a time.
   * After an error `onClose` is called instead of `done`.
   */
  write(bytes: Uint8Array, done: () => void): void;
  /** Ends our side after what was written. */
  closeWrite(): void;
  /** Drops everything at once. */
  close(): void;
}
