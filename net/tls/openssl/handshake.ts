/**
 * A TLS handshake over a stream, by OpenSSL, of either end.
 *
 * @module
 */

import {
  INTERNAL_ERROR,
  isSlip,
  reportInternalError,
} from "../../../platform/errors/internal_errors.ts";
import type { Stream } from "../../stream/stream.ts";
import type { SecureContext } from "./secure_context.ts";
import { SecureSession } from "./secure_session.ts";
import { SecureStream } from "./secure_stream.ts";
import { SslError } from "../trust/ssl_error.ts";
import { serverHandshakeError } from "../trust/tls_errors.ts";
import {
  alternativeNamesOf,
  holderOf,
} from "../../../platform/pki/certificate_words.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";

/** The server that a client expects. */
export interface ClientHandshakeOptions {
  /** The name or address that the server's certificate must bear. */
  readonly serverName: string;
  /** Names and addresses of which any one does as well. */
  readonly otherNames: readonly string[];
  /** Gives it up; its reason is what this rejects with. */
  readonly signal: AbortSignal;
  /** Gets the certificates that the server shows, its own first (DER). */
  shown?(chain: readonly Uint8Array<ArrayBuffer>[]): void;
}

/**
 * Runs the handshake over `stream`, which belongs to this from now on.
 *
 * @param context Of a client.
 * @throws {SslError} Or a system error with its `code`; `stream` is closed then.
 */
export async function handshakeAsClient(
  stream: Stream,
  context: SecureContext,
  { serverName, otherNames, signal, shown }: ClientHandshakeOptions,
): Promise<Stream> {
  let session: SecureSession | undefined;
  try {
    session = new SecureSession(context, { serverName, otherNames });
    const secure = await doHandshake(stream, session, signal);
    shown?.(session.shownCertificates);
    return secure;
  } catch (error) {
    stream.close();
    throw withNames(error, serverName, session?.refusedCertificate);
  }
}

/**
 * Adds the certificate's names to the error of a client that expected another.
 */
function withNames(
  error: unknown,
  serverName: string,
  certificate: Uint8Array<ArrayBuffer> | undefined,
): unknown {
  if (certificate === undefined || !(error instanceof SslError)) return error;
  if (error.code !== "ERR_TLS_CERT_ALTNAME_INVALID") return error;
  const names = alternativeNamesOf(certificate);
  return new SslError(
    error.code,
    `asked for ${serverName}, it is for ${names}`,
  );
}

/**
 * Runs the handshake over `stream`, which it owns from now on. Closing `stream`
 * gives the handshake up, or closes its result.
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
  const { promise, resolve, reject } = Promise.withResolvers<SecureStream>();
  const secure = new SecureStream(stream, session);
  let isOver = false;
  const over = () => {
    isOver = true;
    signal.removeEventListener("abort", onAbort);
  };
  const fail = (error: unknown) => {
    if (isOver) return;
    over();
    secure.close();
    reject(error);
  };
  const onAbort = () => fail(signal.reason);
  const onFault = () => fail(new Error(INTERNAL_ERROR));
  const onReady = () => {
    if (isOver) return;
    try {
      if (!secure.doHandshake()) return;
      over();
      resolve(secure);
    } catch (error) {
      if (!isSlip(error)) return fail(error);
      reportInternalError("handshake", error);
      onFault();
    }
  };
  secure.notify({ onReady, onFault });
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  else onReady();
  return promise;
}
