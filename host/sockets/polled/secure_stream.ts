/**
 * TLS over a socket of the C library, with the calls that the socket itself has:
 * who reads and writes one can do so with the other.
 *
 * Octets are read from the socket only for a reader who asks, so a peer waits
 * as it does without TLS, and none are kept but a ring of each direction.
 *
 * @module
 */

import { HUNGRY, type SecureSession } from "../../libssl/secure_session.ts";
import { truncatedError } from "../../libssl/ssl_error.ts";
import type { PolledStream } from "./polled_stream.ts";
import type { Poller } from "./poller.ts";
import { Ready } from "./poller.ts";
import { closedError, NOTHING_YET } from "./stream_descriptor.ts";

/** See the module description. */
export class SecureStream implements PolledStream {
  /** The peer must hear our goodbye, or it takes the end for a cut. */
  readonly closesInOrder = false;
  readonly poller: Poller;
  readonly number: number;
  readonly isTcp: boolean;
  readonly #descriptor: PolledStream;
  readonly #session: SecureSession;
  #isOpen = true;
  /** The session has nothing to read before the socket has. */
  #isHungry = true;
  #hasOutput = false;
  /** Behind what is still to leave, our side ends. */
  #isEnding = false;

  /** @param session Is freed from here. */
  constructor(descriptor: PolledStream, session: SecureSession) {
    this.#descriptor = descriptor;
    this.#session = session;
    this.poller = descriptor.poller;
    this.number = descriptor.number;
    this.isTcp = descriptor.isTcp;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  peerProcess(): number | undefined {
    return this.#descriptor.peerProcess();
  }

  noticed(ready: number): void {
    this.#descriptor.noticed(ready);
    if (!this.#hasOutput || (ready & Ready.WRITE) === 0) return;
    try {
      this.flush();
    } catch {
      // The kernel says so again to the next who reads or writes.
    }
  }

  /**
   * Goes on with the handshake as far as it goes without waiting.
   *
   * @returns Whether it is complete.
   * @throws {SslError} Or a system error with its `code`.
   */
  shakeHands(): boolean {
    for (;;) {
      const isDone = this.#shakeOnce();
      this.#sendOutput();
      if (isDone) {
        this.#isHungry = false; // What came behind it may be inside.
        return true;
      }
      if (!this.#feed()) return false;
    }
  }

  read(into: Uint8Array<ArrayBuffer>): number {
    if (!this.#isOpen) throw closedError();
    for (;;) {
      if (this.#isHungry && !this.#feed()) return NOTHING_YET;
      const count = this.#session.read(into);
      if (count !== HUNGRY) return count;
      this.#isHungry = true;
      // An answer of TLS's own, such as to a KeyUpdate (RFC 8446 §4.6.3).
      if (!this.#hasOutput) this.#sendOutput();
    }
  }

  write(octets: Uint8Array<ArrayBuffer>): number {
    if (!this.#isOpen) throw closedError();
    if (octets.length === 0 || !this.flush()) return 0;
    const count = this.#session.write(octets);
    this.#sendOutput();
    return count;
  }

  flush(): boolean {
    if (this.#hasOutput) this.#sendOutput();
    return !this.#hasOutput;
  }

  closeWrite(): void {
    if (!this.#isOpen) throw closedError();
    this.#session.end();
    this.#isEnding = true;
    this.#sendOutput();
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#descriptor.close();
    this.#session.free();
  }

  reset(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#descriptor.reset();
    this.#session.free();
  }

  #shakeOnce(): boolean {
    try {
      return this.#session.shakeHands();
    } catch (error) {
      this.#sendLastWords();
      throw error;
    }
  }

  /** An alert, so that the peer can say what is wrong with it. */
  #sendLastWords(): void {
    try {
      this.#sendOutput();
    } catch {
      // It does not want to know.
    }
  }

  /** @returns Whether the socket had anything for the session. */
  #feed(): boolean {
    const count = this.#descriptor.read(this.#session.input);
    if (count === NOTHING_YET) return false;
    if (count === 0) throw truncatedError();
    this.#session.received(count);
    this.#isHungry = false;
    return true;
  }

  #sendOutput(): void {
    for (;;) {
      const output = this.#session.output;
      this.#hasOutput = output.length > 0;
      if (!this.#hasOutput) break;
      const count = this.#descriptor.write(output);
      if (count === 0) return;
      this.#session.sent(count);
    }
    if (!this.#isEnding) return;
    this.#isEnding = false;
    this.#descriptor.closeWrite();
  }
}
