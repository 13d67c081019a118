/**
 * Shakes hands over a socket of the C library, with OpenSSL.
 *
 * @module
 */

import type { SecureSession } from "./secure_session.ts";
import {
  INTERNAL_ERROR,
  isSlip,
  reportInternalError,
} from "../../../platform/errors/internal_errors.ts";
import { identityOf } from "../trust/peer_identity.ts";
import type { Polled } from "../../poll/poller.ts";
import { PolledSocket } from "../../stream/polled_socket.ts";
import { SecureStream } from "./secure_stream.ts";

/**
 * Runs the handshake of `session` over `socket`; both belong to this from now
 * on.
 *
 * @param signal Gives it up; its reason is what this rejects with.
 * @returns The same connection in the clear. Its identity was verified.
 * @throws {SslError} Or a system error with its `code`; all is closed then.
 */
export function doHandshake(
  socket: PolledSocket,
  session: SecureSession,
  signal: AbortSignal,
): Promise<PolledSocket> {
  return new Promise((resolve, reject) => {
    const handshake = new SecureHandshake(socket, session, {
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
  done(secure: PolledSocket): void;
  failed(error: unknown): void;
}

class SecureHandshake implements Polled {
  readonly #socket: PolledSocket;
  readonly #session: SecureSession;
  readonly #stream: SecureStream;
  readonly #outcome: Outcome;
  #isOver = false;

  constructor(
    socket: PolledSocket,
    session: SecureSession,
    outcome: Outcome,
  ) {
    this.#socket = socket;
    this.#session = session;
    this.#outcome = outcome;
    this.#stream = new SecureStream(socket.handOver(this), session);
  }

  start(): void {
    this.#go();
  }

  giveUp(reason: unknown): void {
    this.#fail(reason);
  }

  onReady(ready: number): void {
    if (this.#isOver) return;
    this.#stream.noticed(ready);
    this.#go();
  }

  onFault(): void {
    this.#fail(new Error(INTERNAL_ERROR));
  }

  #go(): void {
    try {
      if (!this.#stream.doHandshake()) return;
      const { remoteAddress, localAddress } = this.#socket;
      const { alpn, serverName, peerCertificate } = this.#session;
      const secure = new PolledSocket(this.#stream, {
        remoteAddress,
        localAddress,
        alpn,
        serverName,
        // The library lets nobody through whose certificate it could not verify.
        identity: identityOf(peerCertificate),
      });
      this.#isOver = true;
      this.#outcome.done(secure);
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
    this.#outcome.failed(error);
  }
}
