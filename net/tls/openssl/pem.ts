/**
 * Certificates and keys of PEM texts, as the library's objects.
 *
 * @module
 */

import { cText, type LibSsl } from "./library.ts";
import { SslError } from "../trust/ssl_error.ts";
import { lastSslError } from "./error_queue.ts";

/** What `read` makes of a text, as a file of the library's. */
function readText<T>(
  library: LibSsl,
  text: string,
  read: (file: Deno.PointerObject) => T,
): T {
  const bytes = new TextEncoder().encode(text);
  // It copies them, so nothing of ours must stay where it is meanwhile.
  const file = library.BIO_new(library.BIO_s_mem());
  if (file === null) throw lastSslError(library);
  try {
    if (bytes.length > 0) library.BIO_write(file, bytes, bytes.length);
    return read(file);
  } finally {
    library.BIO_free(file);
  }
}

/**
 * All certificates of a text; each is the caller's to free.
 *
 * @throws {SslError} One is damaged, and those behind it would be missing.
 */
export function certificatesOf(
  library: LibSsl,
  pem: string,
): Deno.PointerObject[] {
  return readText(library, pem, (file) => {
    const found: Deno.PointerObject[] = [];
    for (;;) {
      const next = library.PEM_read_bio_X509(file, null, null, null);
      if (next === null) break;
      found.push(next);
    }
    if ((library.ERR_peek_last_error() & PACKED) === NO_FURTHER_BLOCK) {
      library.ERR_clear_error();
      return found;
    }
    for (const certificate of found) library.X509_free(certificate);
    throw lastSslError(library);
  });
}

/** From `openssl/err.h`: which library, and its reason. */
const PACKED = 0x7fff_ffffn;
/** PEM_R_NO_START_LINE of ERR_LIB_PEM. */
const NO_FURTHER_BLOCK = 9n << 23n | 108n;

/** An empty password, or OpenSSL would prompt for one on the terminal. */
const NO_PASSWORD = cText("");

/** The key of a text; the caller's to free. @throws {SslError} */
export function privateKeyOf(library: LibSsl, pem: string): Deno.PointerObject {
  const key = readText(
    library,
    pem,
    (file) => library.PEM_read_bio_PrivateKey(file, null, null, NO_PASSWORD),
  );
  if (key === null) throw new SslError("", "no key that can be used");
  return key;
}
