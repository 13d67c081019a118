/**
 * What a TLS session has in the library's memory: its state, and a ring of fixed
 * size for each direction, which sockets read into and write from.
 *
 * @module
 */

import type { LibSsl } from "./library.ts";
import type { SecureContext } from "./secure_context.ts";
import { lastSslError } from "./error_queue.ts";

/** What is written at once; more waits for the next call. */
export const CLEAR_BYTES_MAX = 64 * 1024;

/** TLS's own limit for one record (RFC 8446 §5.1). */
export const RECORD_BYTES_MAX = 16 * 1024;

/** Header, explicit nonce, type and tag, with room to spare (RFC 5246 §6.2.3). */
const RECORD_EXTRA_BYTES = 64;

/** What `CLEAR_BYTES_MAX` become, and an alert or two behind them. */
export const OUTPUT_BYTES: number = CLEAR_BYTES_MAX +
  (CLEAR_BYTES_MAX / RECORD_BYTES_MAX + 2) * RECORD_EXTRA_BYTES;

/** What is taken from a socket at once. */
const INPUT_BYTES = 64 * 1024;

export interface SessionMemory {
  readonly ssl: Deno.PointerObject;
  /** Our end of the pair whose other end TLS reads and writes. */
  readonly network: Deno.PointerObject;
  readonly input: Uint8Array<ArrayBuffer>;
  /** Known when there was something in it. */
  output?: { readonly at: bigint; readonly ring: Uint8Array<ArrayBuffer> };
  /** Where calls leave a pointer. */
  readonly pointer: BigUint64Array<ArrayBuffer>;
  readonly pointerBytes: Uint8Array<ArrayBuffer>;
}

/** Must be longer than what the platform moves about with small arrays. */
const POINTER_WORDS = 16;

/** To be given back by `releaseSession`. @throws {SslError} There is none left. */
export function allocateSession(
  { library, pointer: context }: SecureContext,
): SessionMemory {
  const ssl = library.SSL_new(context);
  if (ssl === null) throw lastSslError(library);
  const pointer = new BigUint64Array(POINTER_WORDS);
  const pointerBytes = new Uint8Array(pointer.buffer);
  const made = library.BIO_new_bio_pair(
    pointerBytes.subarray(0, 8),
    BigInt(OUTPUT_BYTES),
    pointerBytes.subarray(8, 16),
    BigInt(INPUT_BYTES),
  );
  if (made !== 1) {
    library.SSL_free(ssl);
    throw lastSslError(library);
  }
  const inner = Deno.UnsafePointer.create(pointer[0]!)!;
  const network = Deno.UnsafePointer.create(pointer[1]!)!;
  library.SSL_set_bio(ssl, inner, inner);
  library.BIO_nwrite0(network, pointerBytes);
  const input = ringAt(pointer[0]!, INPUT_BYTES);
  return { ssl, network, input, pointer, pointerBytes };
}

/** Nothing of it may be touched any more. */
export function releaseSession(
  library: LibSsl,
  { ssl, network }: SessionMemory,
): void {
  library.SSL_free(ssl); // And its end of the pair.
  library.BIO_free(network);
}

/** Memory of the library, as long as the session is not released. */
export function ringAt(at: bigint, bytes: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(
    Deno.UnsafePointerView.getArrayBuffer(
      Deno.UnsafePointer.create(at)!,
      bytes,
    ),
  );
}
