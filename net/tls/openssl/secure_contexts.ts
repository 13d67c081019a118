/**
 * Contexts that are made once for all connections with the same credentials: to
 * make one takes half as long as a handshake.
 *
 * @module
 */

import type { TlsMaterial } from "../trust/credentials.ts";
import { type LibSsl, openLibssl } from "./library.ts";
import { SecureContext, type SecureContextOptions } from "./secure_context.ts";

/** Kept as long as the credentials are. */
const contexts = new WeakMap<TlsMaterial, Map<string, SecureContext | Error>>();

/**
 * The context for these options, made at the first call.
 *
 * @returns The error: the library cannot use these credentials. The platform's
 *   TLS may be less strict about them.
 */
export function contextOf(
  library: LibSsl,
  options: SecureContextOptions,
): SecureContext | Error {
  const { material, role, alpn, minVersion, tls12Suites } = options;
  const made = contexts.get(material) ?? new Map<string, SecureContext>();
  contexts.set(material, made);
  const key = JSON.stringify([role, alpn, minVersion, tls12Suites]);
  const known = made.get(key);
  if (known !== undefined) return known;
  const context = make(library, options);
  made.set(key, context);
  return context;
}

/**
 * The same for callers that can go on without OpenSSL.
 *
 * @returns `undefined`: there is no library, or it cannot use these credentials;
 *   the platform's TLS may be less strict about keys.
 */
export function usableContext(
  options: SecureContextOptions,
): SecureContext | undefined {
  const library = openLibssl();
  const context = library && contextOf(library, options);
  return context instanceof Error ? undefined : context;
}

function make(
  library: LibSsl,
  options: SecureContextOptions,
): SecureContext | Error {
  try {
    return new SecureContext(library, options);
  } catch (error) {
    return error as Error;
  }
}
