/**
 * Runs the TLS handshake over a stream, with OpenSSL.
 *
 * @module
 */

import type { SecureSession } from "./secure_session.ts";
import {
  INTERNAL_ERROR,
  isSlip,
  reportInternalError,
} from "../../../platform/errors/internal_errors.ts";
import type { Stream, StreamUser } from "../../stream/stream.ts";
import { SecureStream } from "./secure_stream.ts";

/**
 * Runs the handshake of `session` over `stream`; both belong to this from now
 * on.
 *
 * @param signal Gives it up; its reason is what this rejects with.
 * @returns The same connection in the clear. Its identity was verified.
 * @throws {SslError} Or a system error with its `code`; all is closed then.
 */
export function doHandshake(
  stream: Stream,
  session: SecureSession,
  signal: AbortSignal,
): Promise<SecureStream> {
  return new Promise((resolve, reject) => {
    const handshake = new SecureHandshake(stream, session, {
      done: (secure) => {
        signal.removeEventListener("abort", onAbort);
        resolve(secure);
      },
      failed: (error) => {
        signal.removeEventListener("abort", onAbort);
        reject(error);
      },
    });
    const onAbort = () => handshake.giveUp(signal.reason);
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
    else handshake.start();
  });
}

/** Exactly one of them is called, once. */
interface Outcome {
  done(secure: SecureStream): void;
  failed(error: unknown): void;
}

class SecureHandshake implements StreamUser {
  readonly #stream: SecureStream;
  #isOver = false;

  constructor(
    stream: Stream,
    session: SecureSession,
    private readonly outcome: Outcome,
  ) {
    this.#stream = new SecureStream(stream, session);
    this.#stream.notify(this);
  }

  start(): void {
    this.#go();
  }

  giveUp(reason: unknown): void {
    this.#fail(reason);
  }

  onReady(): void {
    if (!this.#isOver) this.#go();
  }

  onFault(): void {
    this.#fail(new Error(INTERNAL_ERROR));
  }

  #go(): void {
    try {
      if (!this.#stream.doHandshake()) return;
      this.#isOver = true;
      this.outcome.done(this.#stream);
    } catch (error) {
      if (!isSlip(error)) return this.#fail(error);
      reportInternalError("handshake", error);
      this.onFault();
    }
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stream.close();
    this.outcome.failed(error);
  }
}
