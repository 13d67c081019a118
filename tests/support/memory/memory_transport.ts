/**
 * Two transports joined in memory: what one writes, the other hears, in a
 * microtask. For everything that takes a `Transport` and wants no sockets.
 *
 * @module
 */

import { ANONYMOUS } from "../../../proto/peer/peer_identity.ts";
import type {
  Transport,
  TransportEvents,
} from "../../../net/stream/transport.ts";
import type { PeerIdentity } from "../../../proto/peer/peer_identity.ts";

/** An identity as a verified certificate of `commonName` would give it. */
export function certified(commonName: string): PeerIdentity {
  return {
    kind: "certificate",
    commonName,
    fingerprint: "00".repeat(32),
    names: [],
  };
}

/** See the module description. */
export class MemoryTransport implements Transport {
  readonly alpn: string;
  /** Who is at the other end. */
  readonly identity: PeerIdentity;
  readonly remoteAddress = "10.0.0.7:4711";
  readonly localAddress = "10.0.0.1:8091";
  #peer!: MemoryTransport;
  #events: TransportEvents | undefined;
  /** What came before `start`. */
  readonly #early: (() => void)[] = [];
  #isClosed = false;

  private constructor(alpn: string, identity: PeerIdentity) {
    this.alpn = alpn;
    this.identity = identity;
  }

  /** @param identity Whom the first one sees at the other end. */
  static pair(
    alpn: string,
    identity: PeerIdentity = ANONYMOUS,
  ): [MemoryTransport, MemoryTransport] {
    const one = new MemoryTransport(alpn, identity);
    const other = new MemoryTransport(alpn, ANONYMOUS);
    one.#peer = other;
    other.#peer = one;
    return [one, other];
  }

  start(events: TransportEvents): void {
    this.#events = events;
    for (const happen of this.#early.splice(0)) happen();
  }

  write(bytes: Uint8Array, done: () => void): void {
    const chunk = bytes.slice();
    queueMicrotask(() => {
      this.#peer.#hear((events) => events.onChunk(chunk));
      done();
    });
  }

  closeWrite(): void {
    queueMicrotask(() => this.#peer.#hear((events) => events.onEnd()));
  }

  close(): void {
    queueMicrotask(() => {
      this.#close();
      this.#peer.#close();
    });
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#hear((events) => events.onClose(undefined));
    this.#isClosed = true;
  }

  #hear(tell: (events: TransportEvents) => void): void {
    if (this.#isClosed) return;
    if (this.#events === undefined) this.#early.push(() => this.#hear(tell));
    else tell(this.#events);
  }
}
