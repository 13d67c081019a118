/**
 * A TLS server's handshake over a stream, by OpenSSL.
 *
 * @module
 */

import type { SecureSession } from "./secure_session.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { holderOf } from "../../../platform/pki/certificate_words.ts";
import { serverHandshakeError } from "../trust/tls_errors.ts";
import type { Stream } from "../../stream/stream.ts";
import { doHandshake } from "./secure_handshake.ts";

/**
 * Runs the handshake over `stream`, which belongs to this from now on and may
 * still be closed: that gives it up, or closes what came of it.
 *
 * @param open Makes a session of a server.
 * @throws {TlsHandshakeError} With `stream` closed.
 */
export async function handshakeAsServer(
  stream: Stream,
  open: () => SecureSession,
  timeoutMs: number,
): Promise<Stream> {
  const controller = new AbortController();
  const deadline = systemTimers.after(
    timeoutMs,
    () => controller.abort(TIMED_OUT),
  );
  let session: SecureSession | undefined;
  try {
    session = open();
    return await doHandshake(stream, session, controller.signal);
  } catch (error) {
    stream.close();
    const shown = session?.refusedCertificate;
    throw serverHandshakeError(
      error,
      stream.remoteAddress,
      shown && holderOf(shown),
    );
  } finally {
    deadline.cancel();
  }
}

const TIMED_OUT = new Error("TLS handshake timeout");
