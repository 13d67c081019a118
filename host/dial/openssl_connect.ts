/**
 * An agent's connection to a server by OpenSSL, over sockets of the C library.
 *
 * @module
 */

import { X509Certificate } from "node:crypto";
import { openLibssl } from "../libssl/library.ts";
import { SecureContext } from "../libssl/secure_context.ts";
import { SecureSession } from "../libssl/secure_session.ts";
import { SslError } from "../libssl/ssl_error.ts";
import { openLibc } from "../sockets/libc/libc.ts";
import { tuneDescriptor } from "../sockets/libc/tcp_options.ts";
import { connectPolledTcp } from "../sockets/polled/polled_connect.ts";
import type { PolledSocket } from "../sockets/polled/polled_socket.ts";
import { shakeHands } from "../sockets/polled/secure_handshake.ts";
import type { TlsMaterial } from "../tls/credentials.ts";
import type { DirectTarget } from "./deno_tls_connect.ts";

/**
 * Connects and shakes hands.
 *
 * @param target `host` is an address; its credentials have a CA.
 * @param signal Rejects with its reason.
 * @returns `undefined` where only the platform can: there is no library, the
 *   host is a name, or the library cannot use these credentials.
 * @throws {SslError} Or a system error with its `code`.
 */
export function connectOpenssl(
  target: DirectTarget,
  signal: AbortSignal,
): Promise<PolledSocket> | undefined {
  const context = contextFor(target);
  if (context === undefined) return undefined;
  const { host: hostname, port } = target;
  return connectPolledTcp({ hostname, port }, signal)
    ?.then((socket) => secure(socket, context, target, signal));
}

async function secure(
  socket: PolledSocket,
  context: SecureContext,
  { serverName }: DirectTarget,
  signal: AbortSignal,
): Promise<PolledSocket> {
  tuneDescriptor(openLibc()!, socket.number);
  const session = new SecureSession(context, { serverName });
  try {
    return await shakeHands(socket, session, signal);
  } catch (error) {
    socket.close();
    throw withNames(error, serverName, session.refusedCertificate);
  }
}

/** Says which names the certificate has, to who asked for another. */
function withNames(
  error: unknown,
  serverName: string,
  certificate: Uint8Array<ArrayBuffer> | undefined,
): unknown {
  if (certificate === undefined || !(error instanceof SslError)) return error;
  if (error.code !== "ERR_TLS_CERT_ALTNAME_INVALID") return error;
  const { subjectAltName } = new X509Certificate(certificate);
  return new SslError(
    error.code,
    `asked for ${serverName}, it is for ${subjectAltName ?? "no name"}`,
  );
}

/** Kept as long as the credentials are: to make one takes half a handshake. */
const contexts = new WeakMap<TlsMaterial, Map<string, SecureContext | null>>();

function contextFor(
  { credentials, alpn }: DirectTarget,
): SecureContext | undefined {
  const library = openLibssl();
  // Without a CA of its own it trusts the public ones, which the platform knows.
  if (library === undefined || credentials.ca === "") return undefined;
  const known = contexts.get(credentials) ?? new Map();
  contexts.set(credentials, known);
  const key = alpn.join();
  if (!known.has(key)) known.set(key, make());
  return known.get(key) ?? undefined;

  function make(): SecureContext | null {
    try {
      return new SecureContext(library!, {
        role: { kind: "client" },
        material: credentials,
        alpn,
        minVersion: "TLSv1.2",
      });
    } catch {
      return null; // The platform's TLS may be less strict about keys.
    }
  }
}
