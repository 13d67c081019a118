/**
 * An agent's connection to a server by OpenSSL, over sockets of the C library.
 *
 * @module
 */

import type { SecureContext } from "../tls/openssl/secure_context.ts";
import { usableContext } from "../tls/openssl/secure_contexts.ts";
import { openLibc } from "../libc/libc.ts";
import { tuneDescriptor } from "../libc/tcp_options.ts";
import { handshakeAsClient } from "../tls/openssl/client_handshake.ts";
import { connectPolledTcp } from "../stream/polled_connect.ts";
import type { PolledSocket } from "../stream/polled_socket.ts";
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
  return await handshakeAsClient(socket, context, serverName, signal);
}

function contextFor(
  { credentials: material, alpn }: DirectTarget,
): SecureContext | undefined {
  // Without a CA of its own it trusts the public ones, which the platform knows.
  if (material.ca === "") return undefined;
  return usableContext({
    role: { kind: "client" },
    material,
    alpn,
    minVersion: "TLSv1.2",
  });
}
