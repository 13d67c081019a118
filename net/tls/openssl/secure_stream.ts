/**
 * TLS by OpenSSL over any stream.
 *
 * Bytes are read from the socket only when a reader wants them, so backpressure
 * reaches the peer as without TLS. Only a ring of each direction is kept.
 *
 * @module
 */

import type { PeerIdentity } from "../../../proto/peer/peer_identity.ts";
import {
  type HandshakeResult,
  type SecureSession,
  WANT_READ,
  WANT_WRITE,
} from "./secure_session.ts";
import { SslError } from "../trust/ssl_error.ts";
import { truncatedError } from "./error_queue.ts";
import { ANONYMOUS } from "../../../proto/peer/peer_identity.ts";
import { identityOf } from "../trust/peer_identity.ts";
import {
  closedError,
  type Stream,
  type StreamUser,
  WOULD_BLOCK,
} from "../../stream/stream.ts";
import { StreamLayer } from "../../stream/stream_layer.ts";
import { Ready } from "../../poll/poller.ts";

/**
 * How much a peer may send without a byte of plaintext. Each KeyUpdate of a few
 * bytes is new keys for us, so a peer that sends nothing else would keep us
 * from others. Tickets and certificates are shorter.
 */
export const IDLE_BYTES_MAX: number = 256 * 1024;

/** The result of a handshake. */
interface Shown {
  readonly alpn: string;
  readonly serverName: string;
  readonly identity: PeerIdentity;
}

const NOTHING_SHOWN: Shown = {
  alpn: "",
  serverName: "",
  identity: ANONYMOUS,
};

export class SecureStream extends StreamLayer implements StreamUser {
  readonly #session: SecureSession;
  #isOpen = true;
  /** The session has nothing to read before the socket has. */
  #wantsRead = true;
  #hasOutput = false;
  /** The next step after the last bytes have left. */
  #ending: "no" | "goodbye" | "descriptor" = "no";
  /** See {@linkcode IDLE_BYTES_MAX}. */
  #idleBytes = 0;
  /** Why nothing leaves any more; the kernel reports that only once. */
  #failure: unknown;

  #shown = NOTHING_SHOWN;
  #user: StreamUser | undefined;

  /** @param session Is freed from here. */
  constructor(below: Stream, session: SecureSession) {
    super(below);
    this.#session = session;
    below.notify(this);
  }

  override get alpn(): string {
    return this.#shown.alpn;
  }

  override get serverName(): string {
    return this.#shown.serverName;
  }

  override get identity(): PeerIdentity {
    return this.#shown.identity;
  }

  override get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The peer must receive our close_notify, or it takes the end for a cut. */
  override get closesInOrder(): boolean {
    return false;
  }

  override notify(user: StreamUser): void {
    this.#user = user;
  }

  onReady(hint: number): void {
    // Another holder has closed the stream below.
    if (this.#isOpen && !this.below.isOpen) this.close();
    if (this.#isOpen && this.#hasOutput && (hint & Ready.WRITE) !== 0) {
      this.#trySend();
    }
    this.#user?.onReady(hint);
  }

  onFault(): void {
    if (this.#user === undefined) this.reset();
    else this.#user.onFault();
  }

  /**
   * Goes on with the handshake as far as it goes without waiting.
   *
   * @returns Whether it is complete.
   * @throws {SslError} Or a system error with its `code`.
   */
  doHandshake(): boolean {
    if (!this.#isOpen) throw closedError();
    for (;;) {
      const shaken = this.#shakeOnce();
      this.#trySend(); // A peer that reads no more may have sent the reason.
      if (shaken === "complete") {
        this.#wantsRead = false; // What came behind it may be inside.
        this.#shown = shownIn(this.#session);
        return true;
      }
      if (this.#canGoOn(shaken)) continue;
      if (this.#failure !== undefined) throw this.#failure;
      return false;
    }
  }

  override read(into: Uint8Array<ArrayBuffer>): number {
    if (!this.#isOpen) throw closedError();
    for (;;) {
      if (this.#wantsRead && !this.#feed()) return WOULD_BLOCK;
      const count = this.#readOnce(into);
      if (count >= 0) {
        this.#idleBytes = 0;
        return count;
      }
      // An answer of TLS's own, such as to a KeyUpdate (RFC 8446 §4.6.3).
      this.#trySend();
      if (count === WANT_READ) this.#wantsRead = true;
      else if (this.#hasOutput) return WOULD_BLOCK;
    }
  }

  override write(bytes: Uint8Array<ArrayBuffer>): number {
    if (!this.#isOpen) throw closedError();
    if (bytes.length === 0 || !this.flush()) return 0;
    for (;;) {
      const count = this.#session.write(bytes);
      this.#sendOutput();
      if (count >= 0) return count;
      if (!this.#canGoOn(count)) return 0;
    }
  }

  override flush(): boolean {
    if (!this.#isOpen) throw closedError();
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#hasOutput) this.#sendOutput();
    return !this.#hasOutput;
  }

  override closeWrite(): void {
    if (!this.#isOpen) throw closedError();
    this.#ending = "goodbye";
    this.#sendOutput();
  }

  override close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.below.close();
    this.#session.free();
  }

  override reset(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.below.reset();
    this.#session.free();
  }

  #shakeOnce(): HandshakeResult {
    try {
      return this.#session.doHandshake();
    } catch (error) {
      this.#trySend();
      throw error;
    }
  }

  #readOnce(into: Uint8Array<ArrayBuffer>): number {
    try {
      return this.#session.read(into);
    } catch (error) {
      this.#trySend();
      throw error;
    }
  }

  /** For alerts and answers: it does not matter if the peer is gone. */
  #trySend(): void {
    try {
      this.#sendOutput();
    } catch {
      // Kept in `#failure`, for the next write.
    }
  }

  /** Whether the session got the bytes that it lacked. */
  #canGoOn(lacking: number): boolean {
    return lacking === WANT_WRITE ? !this.#hasOutput : this.#feed();
  }

  /** @returns Whether the socket had anything for the session. */
  #feed(): boolean {
    const count = this.below.read(this.#session.input);
    if (count === WOULD_BLOCK) return false;
    if (count === 0) throw this.#failure ?? truncatedError();
    this.#idleBytes += count;
    if (this.#idleBytes > IDLE_BYTES_MAX) throw idleError();
    this.#session.received(count);
    this.#wantsRead = false;
    return true;
  }

  #sendOutput(): void {
    for (;;) {
      const output = this.#session.output;
      this.#hasOutput = output.length > 0;
      if (this.#hasOutput) {
        const count = this.#send(output);
        if (count === 0) return;
        this.#session.sent(count);
      } else if (this.#ending === "goodbye") {
        if (this.#session.end()) this.#ending = "descriptor";
      } else break;
    }
    if (this.#ending !== "descriptor") return;
    this.#ending = "no";
    try {
      this.below.closeWrite();
    } catch {
      // Our close_notify is on its way, and a peer that is gone needs none.
    }
  }

  #send(output: Uint8Array<ArrayBuffer>): number {
    try {
      return this.below.write(output);
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  }
}

/** The library admits no peer whose certificate it could not verify. */
function shownIn({ alpn, serverName, peerCertificate }: SecureSession): Shown {
  return { alpn, serverName, identity: identityOf(peerCertificate) };
}

function idleError(): SslError {
  return new SslError("ERR_TLS_IDLE", "TLS peer says nothing but TLS's own");
}
