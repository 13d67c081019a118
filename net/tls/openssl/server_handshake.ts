/**
 * A TLS server's handshake over a socket of the C library.
 *
 * @module
 */

import type { SecureSession } from "./secure_session.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { holderOf } from "../../../platform/pki/certificate_words.ts";
import { serverHandshakeError } from "../trust/tls_errors.ts";
import type { PolledSocket } from "../../stream/polled_socket.ts";
import { doHandshake } from "./secure_handshake.ts";
import { closedError } from "../../stream/stream_descriptor.ts";

/** What a server grants its clients. */
export interface ServerHandshakeOptions {
  readonly timeoutMs: number;
  /** Called when it is closed from here, also while it shakes hands. */
  closed(): void;
}

/**
 * Runs the handshake over `socket`, which belongs to this from now on and may
 * still be closed: that gives it up, or closes what came of it.
 *
 * @param open Makes a session of a server.
 * @throws {TlsHandshakeError} With `socket` closed.
 */
export async function handshakeAsServer(
  socket: PolledSocket,
  open: () => SecureSession,
  { timeoutMs, closed }: ServerHandshakeOptions,
): Promise<PolledSocket> {
  const controller = new AbortController();
  const deadline = systemTimers.after(
    timeoutMs,
    () => controller.abort(TIMED_OUT),
  );
  socket.onClosed = () => controller.abort(closedError());
  let session: SecureSession | undefined;
  try {
    session = open();
    const secure = await doHandshake(socket, session, controller.signal);
    secure.onClosed = closed;
    socket.onClosed = () => secure.close();
    return secure;
  } catch (error) {
    socket.onClosed = closed;
    socket.close();
    const shown = session?.refusedCertificate;
    throw serverHandshakeError(
      error,
      socket.remoteAddress,
      shown && holderOf(shown),
    );
  } finally {
    deadline.cancel();
  }
}

const TIMED_OUT = new Error("TLS handshake timeout");
