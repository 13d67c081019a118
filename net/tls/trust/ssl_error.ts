/**
 * A failure of TLS as OpenSSL and `node:tls` alike report it.
 *
 * @module
 */

/** A failure of TLS. `code` is one that `tls_errors.ts` knows, as a rule. */
export class SslError extends Error {
  override readonly name = "SslError";

  /** @param certificate The peer's that was refused, if that was it (DER). */
  constructor(
    readonly code: string,
    message: string,
    readonly certificate?: Uint8Array<ArrayBuffer>,
  ) {
    super(message);
  }
}
