/**
 * TLS by `node:tls` over any stream, in either role, behind a {@linkcode TlsGate}.
 *
 * **Never paused.** The platform destroys a TLS socket as soon as both ends
 * have sent close_notify, and with it decrypted bytes that are unread and
 * encrypted bytes that are unsent. So bytes are taken from it at once, into a
 * queue of our own that outlives it; the gate is shut while that queue is full;
 * and it is destroyed only when it is silent.
 *
 * @module
 */

import type { TLSSocket } from "node:tls";
import { collectNursery } from "../../../platform/process/garbage.ts";
import { sharedBufferPool } from "../../../proto/bytes/buffer_pool.ts";
import type { PeerIdentity } from "../../../proto/peer/peer_identity.ts";
import { PooledQueue } from "../../../proto/transfer/pooled_queue.ts";
import { Ready } from "../../poll/poller.ts";
import { Notifier } from "../../stream/unpolled_stream.ts";
import {
  closedError,
  type Stream,
  type StreamUser,
  WOULD_BLOCK,
} from "../../stream/stream.ts";
import { StreamLayer } from "../../stream/stream_layer.ts";
import { peerIdentityOf } from "../trust/peer_identity.ts";
import { HIGH_WATER_BYTES, type TlsGate } from "./tls_gate.ts";

/** How long bytes that TLS has produced may take to leave after `close`. */
const CLOSE_LINGER_MS = 2_000;

/**
 * How long TLS may take to find the peer's close_notify in bytes that it has
 * already; it needs some turns of the event loop.
 */
const END_GRACE_MS = 10;

/** What is written at once; more waits for the next call. */
const WRITE_BYTES_MAX = 128 * 1024;

/** The peer's action, and its result. */
type Receiving =
  | "open"
  /** The stream below has ended; close_notify may have come before that. */
  | "network ended"
  | "in doubt"
  | "ended"
  | { readonly error: Error };

export class NodeTlsStream extends StreamLayer {
  readonly #alpn: string;
  readonly #serverName: string;
  readonly #identity: PeerIdentity;
  readonly #gate: TlsGate;
  readonly #tls: TLSSocket;
  readonly #notifier: Notifier;
  readonly #arrived = new PooledQueue();
  #isOpen = true;
  #receiving: Receiving = "open";
  #inFlight: Uint8Array<ArrayBuffer> | undefined;
  #sending: "open" | "ending" | "ended" = "open";
  #isLingering = false;
  readonly #destroyTls: (error?: Error) => void;

  /**
   * In the turn of the handshake: bytes that arrive without a listener would
   * pause the socket.
   *
   * @param below The stream that the gate reads and writes.
   * @param secure A TLS socket over `gate` whose handshake is complete.
   */
  constructor(below: Stream, gate: TlsGate, secure: TLSSocket) {
    super(below);
    this.#alpn = secure.alpnProtocol || "";
    // `false` or `null` without; no name that could be in there is longer.
    const { servername } = secure as { servername?: string | false | null };
    this.#serverName = servername || "";
    this.#identity = peerIdentityOf(secure);
    this.#gate = gate;
    this.#tls = secure;
    this.#notifier = new Notifier(below.turn);
    gate.isBlocked = () =>
      !secure.destroyed && this.#arrived.bytes >= HIGH_WATER_BYTES;
    gate.onNetworkEnd = () => this.#receive("network ended");
    gate.onCut = () => this.#forget();
    secure.on("data", (chunk: Uint8Array) => this.#onData(chunk));
    secure.on("end", () => this.#receive("ended"));
    // Called before the platform is notified, which may destroy the socket
    // then.
    secure.prependListener("finish", () => this.#drain());
    secure.on("error", (error: Error) => this.#receive({ error }));
    secure.on("close", () => this.#onTlsClosed());
    this.#destroyTls = secure.destroy.bind(secure);
    // When both ends have sent close_notify, which may still be on its way.
    secure.destroy = (error) => {
      if (error === undefined || error === null) this.#linger();
      else this.#destroyTls(error);
      return secure;
    };
  }

  override get alpn(): string {
    return this.#alpn;
  }

  override get serverName(): string {
    return this.#serverName;
  }

  override get identity(): PeerIdentity {
    return this.#identity;
  }

  override get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The peer must receive our close_notify, or it takes the end for a cut. */
  override get closesInOrder(): boolean {
    return false;
  }

  override notify(user: StreamUser): void {
    this.#notifier.user = user;
  }

  override goOn(): void {
    this.#notifier.goOn();
  }

  override read(into: Uint8Array<ArrayBuffer>): number {
    if (!this.#isOpen) throw closedError();
    const arrived = this.#arrived;
    if (arrived.bytes > 0) {
      const wasFull = arrived.bytes >= HIGH_WATER_BYTES;
      const run = arrived.peek().subarray(0, into.length);
      into.set(run);
      const { length } = run;
      arrived.drop(length);
      // Not from inside this call: it may find bytes at once.
      if (wasFull && arrived.bytes < HIGH_WATER_BYTES) {
        queueMicrotask(this.#openGate);
      }
      return length;
    }
    const receiving = this.#receiving;
    if (typeof receiving === "object") throw receiving.error;
    if (receiving === "ended") return 0;
    if (receiving === "network ended") {
      this.#receiving = "in doubt";
      setTimeout(() => this.#truncate(), END_GRACE_MS);
    }
    return WOULD_BLOCK;
  }

  override write(bytes: Uint8Array<ArrayBuffer>): number {
    this.#checkSending();
    if (this.#inFlight !== undefined || bytes.length === 0) return 0;
    const count = Math.min(bytes.length, WRITE_BYTES_MAX);
    const own = this.#inFlight = sharedBufferPool.acquire(count);
    own.set(count === bytes.length ? bytes : bytes.subarray(0, count));
    this.#tls.write(own.subarray(0, count), () => {
      this.#inFlight = undefined;
      sharedBufferPool.release(own);
      if (this.#sending === "ending") this.#endOurSide();
      this.#notifier.notifySoon(Ready.WRITE);
    });
    return count;
  }

  override flush(): boolean {
    this.#checkSending();
    return this.#inFlight === undefined && this.#sending !== "ending";
  }

  override closeWrite(): void {
    this.#checkSending();
    if (this.#sending !== "open") return;
    this.#sending = "ending";
    if (this.#inFlight === undefined) this.#endOurSide();
  }

  override close(): void {
    if (!this.#isOpen) return;
    this.#forget();
    this.#linger();
  }

  override reset(): void {
    if (!this.#isOpen) return;
    this.below.reset();
    this.#forget();
    this.#destroyTls();
    this.#gate.destroy();
  }

  readonly #openGate = () => this.#gate.open();

  /** The platform would lose bytes that are still on their way through TLS. */
  #endOurSide(): void {
    this.#tls.end(() => this.#gate.finish().then(this.#onSent));
  }

  readonly #onSent = () => {
    this.#sending = "ended";
    this.#notifier.notifySoon(Ready.WRITE);
  };

  #checkSending(): void {
    if (!this.#isOpen) throw closedError();
    if (typeof this.#receiving === "object") throw this.#receiving.error;
  }

  #onData(chunk: Uint8Array): void {
    if (this.#isOpen) {
      this.#arrived.push(chunk);
      this.#notifier.notifySoon(Ready.READ);
    }
    discard(chunk);
  }

  /** Takes bytes that the platform has decrypted and not delivered yet. */
  #drain(): void {
    while (this.#tls.readableLength > 0) this.#tls.read();
  }

  #receive(receiving: Receiving): void {
    const before = this.#receiving;
    if (before === "ended" || typeof before === "object") return;
    this.#receiving = receiving;
    this.#notifier.notifySoon(Ready.PEER_END);
  }

  /**
   * The network has ended and TLS has not: the connection was cut, and the
   * missing bytes may matter (RFC 8446 §6.1). That is no clean end.
   */
  #truncate(): void {
    if (this.#receiving !== "in doubt" || this.#arrived.bytes > 0) return;
    this.#receive({ error: truncated() });
    this.#destroyTls();
  }

  /** Drops all that has arrived: the stream is not read any more. */
  #forget(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#arrived.clear();
    if (this.below.isOpen) {
      // The stream below has some time left; nothing waits for it.
      const closed = this.onClosed;
      this.onClosed = undefined;
      closed?.();
    }
    this.#notifier.notifySoon(Ready.HANGUP);
  }

  /** Ends TLS after the bytes that it has not given to the gate yet. */
  #linger(): void {
    if (this.#isLingering) return;
    this.#isLingering = true;
    const end = () => {
      clearTimeout(timer);
      this.#destroyTls();
      this.#gate.destroy();
    };
    const timer = setTimeout(end, CLOSE_LINGER_MS);
    this.#gate.finish().then(end);
  }

  #onTlsClosed(): void {
    this.#receive({ error: closedError() });
    this.#gate.destroy();
  }
}

function truncated(): Error {
  const error = new Error("TLS connection was cut off without a goodbye");
  return Object.assign(error, { code: "ERR_TLS_TRUNCATED" });
}

/** Smaller chunks are left to the collector: freeing them costs as much. */
const DISCARDED_BYTES_MIN = 4 * 1024;

/** The young generation is collected after this many bytes in chunks. */
const COLLECTED_BYTES = 4 * 1024 * 1024;

/**
 * Frees the memory of a chunk that must not be used any more. Each chunk has
 * memory of its own, hundreds of MB in a second, which the collector does not
 * see: it would let memory grow by 200 MB before it collects. The platform's
 * other memory for chunks is collected every few chunks.
 */
function discard(chunk: Uint8Array): void {
  if (chunk.length < DISCARDED_BYTES_MIN) return;
  const memory = chunk.buffer as ArrayBuffer;
  if (memory.byteLength === chunk.length) memory.transfer(0);
  uncollectedBytes += chunk.length;
  if (uncollectedBytes < COLLECTED_BYTES) return;
  uncollectedBytes = 0;
  collectNursery();
}

let uncollectedBytes = 0;
