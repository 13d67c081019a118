/**
 * Streams without sockets, for everything that takes a stream: two that are
 * joined, where what one writes the other reads a microtask later, and what
 * streams in the hands of a test have in common with them.
 *
 * @module
 */

import { UnpolledStream } from "../../../net/stream/unpolled_stream.ts";
import { Ready } from "../../../net/poll/poller.ts";
import { WOULD_BLOCK } from "../../../net/stream/stream.ts";
import {
  ANONYMOUS,
  type PeerIdentity,
} from "../../../proto/peer/peer_identity.ts";

/** An identity as a verified certificate of `commonName` would give it. */
export function certified(commonName: string): PeerIdentity {
  return {
    kind: "certificate",
    commonName,
    fingerprint: "00".repeat(32),
    names: [],
  };
}

/** A stream to which bytes are delivered. */
export abstract class DeliveredStream extends UnpolledStream {
  /** Reads that found nothing. */
  waits = 0;
  readonly #arrived: (Uint8Array | Error | null)[] = [];

  /** Bytes arrive; `null`: the peer's end. An error is what a read throws. */
  deliver(arrived: Uint8Array | Error | null): void {
    this.#arrived.push(arrived);
    this.notifier.notify(Ready.READ);
  }

  read(into: Uint8Array): number {
    this.mustBeOpen();
    const first = this.#arrived[0];
    if (first instanceof Error) throw first;
    if (first === undefined) this.waits++;
    if (first === undefined) return WOULD_BLOCK;
    if (first === null) return 0;
    const run = first.subarray(0, into.length);
    into.set(run);
    if (run.length === first.length) this.#arrived.shift();
    else this.#arrived[0] = first.subarray(run.length);
    return run.length;
  }

  flush(): boolean {
    this.mustBeOpen();
    return true;
  }
}

/** One of two that are joined. */
export class MemoryStream extends DeliveredStream {
  readonly remoteAddress = "10.0.0.7:4711";
  readonly localAddress = "10.0.0.1:8091";
  readonly closesInOrder = true;
  #peer!: MemoryStream;

  /** @param identity Whom the first one sees at the other end. */
  static pair(
    alpn = "",
    identity: PeerIdentity = ANONYMOUS,
  ): [MemoryStream, MemoryStream] {
    const one = new MemoryStream(alpn, identity);
    const other = new MemoryStream(alpn);
    one.#peer = other;
    other.#peer = one;
    return [one, other];
  }

  write(bytes: Uint8Array): number {
    this.mustBeOpen();
    this.#send(bytes.slice());
    return bytes.length;
  }

  closeWrite(): void {
    this.mustBeOpen();
    this.#send(null);
  }

  close(): void {
    this.end(() => this.#send(null));
  }

  reset(): void {
    this.close();
  }

  #send(chunk: Uint8Array | null): void {
    queueMicrotask(() => this.#peer.deliver(chunk));
  }
}
