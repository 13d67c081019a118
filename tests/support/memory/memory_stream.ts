/**
 * Two streams joined in memory: what one writes, the other reads, a microtask
 * later. For everything that takes a stream and wants no sockets.
 *
 * @module
 */

import { loopTurn, Notifier } from "../../../net/stream/loop_turn.ts";
import { Ready } from "../../../net/poll/poller.ts";
import {
  closedError,
  type Stream,
  type StreamUser,
  WOULD_BLOCK,
} from "../../../net/stream/stream.ts";
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

/** See the module description. */
export class MemoryStream implements Stream {
  readonly serverName = "";
  readonly remoteAddress = "10.0.0.7:4711";
  readonly localAddress = "10.0.0.1:8091";
  readonly descriptor = undefined;
  readonly turn = loopTurn;
  readonly closesInOrder = true;
  onClosed: (() => void) | undefined;
  readonly #notifier = new Notifier();
  readonly #arrived: Uint8Array[] = [];
  #peer!: MemoryStream;
  #peerEnded = false;
  #isOpen = true;

  private constructor(
    readonly alpn: string,
    /** Who is at the other end. */
    readonly identity: PeerIdentity,
  ) {}

  /** @param identity Whom the first one sees at the other end. */
  static pair(
    alpn = "",
    identity: PeerIdentity = ANONYMOUS,
  ): [MemoryStream, MemoryStream] {
    const one = new MemoryStream(alpn, identity);
    const other = new MemoryStream(alpn, ANONYMOUS);
    one.#peer = other;
    other.#peer = one;
    return [one, other];
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  peerCredentials(): undefined {
    return undefined;
  }

  notify(user: StreamUser): void {
    this.#notifier.user = user;
  }

  goOn(): void {
    this.#notifier.goOn();
  }

  read(into: Uint8Array): number {
    if (!this.#isOpen) throw closedError();
    const first = this.#arrived[0];
    if (first === undefined) return this.#peerEnded ? 0 : WOULD_BLOCK;
    const run = first.subarray(0, into.length);
    into.set(run);
    if (run.length === first.length) this.#arrived.shift();
    else this.#arrived[0] = first.subarray(run.length);
    return run.length;
  }

  write(bytes: Uint8Array): number {
    if (!this.#isOpen) throw closedError();
    const chunk = bytes.slice();
    queueMicrotask(() => this.#peer.#arrive(chunk));
    return bytes.length;
  }

  flush(): boolean {
    if (!this.#isOpen) throw closedError();
    return true;
  }

  closeWrite(): void {
    if (!this.#isOpen) throw closedError();
    queueMicrotask(() => this.#peer.#arrive(undefined));
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    queueMicrotask(() => this.#peer.#arrive(undefined));
    this.onClosed?.();
    this.#notifier.notifySoon(Ready.HANGUP);
  }

  reset(): void {
    this.close();
  }

  #arrive(chunk: Uint8Array | undefined): void {
    if (chunk === undefined) this.#peerEnded = true;
    else this.#arrived.push(chunk);
    this.#notifier.notify(Ready.READ);
  }
}
