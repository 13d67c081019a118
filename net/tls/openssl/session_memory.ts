/**
 * What a TLS session has in the library's memory: its state, and a ring for
 * each direction, which sockets read into and write from. The rings of a quiet
 * session are small, because a server has tens of thousands of them.
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

/**
 * The size of `CLEAR_BYTES_MAX` in records, with an alert or two after them.
 */
const OUTPUT_BYTES: number = CLEAR_BYTES_MAX +
  (CLEAR_BYTES_MAX / RECORD_BYTES_MAX + 2) * RECORD_EXTRA_BYTES;

/** What is taken from a socket at once. */
const INPUT_BYTES = 64 * 1024;

/**
 * Initial size of either ring. A handshake, a PING, a dial and a small request
 * fit; with 64 KiB from the start an idle link needed 13 KiB more.
 */
const SMALL_BYTES = 2 * 1024;

/** What surely fits a small ring when it is encrypted. */
const SMALL_CLEAR_BYTES: number = SMALL_BYTES - 2 * RECORD_EXTRA_BYTES;

/** From `openssl/bio.h`. */
const SET_WRITE_BUF_SIZE = 136;
const MAKE_BIO_PAIR = 138;
const DESTROY_BIO_PAIR = 139;

export interface SessionMemory {
  readonly ssl: Deno.PointerObject;
  /** Our end of the pair, and the other one, which TLS reads and writes. */
  readonly network: Deno.PointerObject;
  readonly inner: Deno.PointerObject;
  /** Both rings are small. */
  isSmall: boolean;
  input: Uint8Array<ArrayBuffer>;
  /** Known when there was something in it. */
  output: RingPlace | undefined;
}

/** The start of a ring. */
export interface RingPlace {
  readonly at: bigint;
  readonly ring: Uint8Array<ArrayBuffer>;
}

/** Must be longer than what the platform moves about with small arrays. */
const POINTER_WORDS = 16;

/** Where calls store a pointer, which is read before the next call. */
export const pointer: BigUint64Array<ArrayBuffer> = new BigUint64Array(
  POINTER_WORDS,
);
export const pointerBytes: Uint8Array<ArrayBuffer> = new Uint8Array(
  pointer.buffer,
);

/**
 * Must be returned with `releaseSession`. @throws {SslError} There is none
 * left.
 */
export function allocateSession(
  { library, pointer: context }: SecureContext,
): SessionMemory {
  const ssl = library.SSL_new(context);
  if (ssl === null) throw lastSslError(library);
  const made = library.BIO_new_bio_pair(
    pointerBytes.subarray(0, 8),
    BigInt(SMALL_BYTES),
    pointerBytes.subarray(8, 16),
    BigInt(SMALL_BYTES),
  );
  if (made !== 1) {
    library.SSL_free(ssl);
    throw lastSslError(library);
  }
  const inner = Deno.UnsafePointer.create(pointer[0]!)!;
  const network = Deno.UnsafePointer.create(pointer[1]!)!;
  library.SSL_set_bio(ssl, inner, inner);
  library.BIO_nwrite0(network, pointerBytes);
  const input = ringAt(pointer[0]!, SMALL_BYTES);
  return { ssl, network, inner, input, isSmall: true, output: undefined };
}

/** What lies in the output ring now. */
export function outputOf(
  library: LibSsl,
  memory: SessionMemory,
): Uint8Array<ArrayBuffer> | undefined {
  const { network, isSmall } = memory;
  const length = library.BIO_nread0(network, pointerBytes);
  if (length <= 0) return undefined;
  // The first byte of all stands where the ring begins.
  const { at: begin, ring } = memory.output ??= {
    at: pointer[0]!,
    ring: ringAt(pointer[0]!, isSmall ? SMALL_BYTES : OUTPUT_BYTES),
  };
  const at = Number(pointer[0]! - begin);
  return ring.subarray(at, at + length);
}

/** Whether this many plain bytes deserve larger rings. */
export function isMuch(bytes: number): boolean {
  return bytes > SMALL_CLEAR_BYTES;
}

/**
 * Enlarges both rings, if they are small and empty: more bytes are coming than
 * they hold.
 *
 * @throws {SslError} There is no memory left; the session is unusable.
 */
export function enlargeRings(library: LibSsl, memory: SessionMemory): void {
  const { network, inner } = memory;
  if (!memory.isSmall || library.BIO_ctrl_wpending(network) !== 0n) return;
  if (library.BIO_nread0(network, pointerBytes) > 0) return;
  library.BIO_ctrl(network, DESTROY_BIO_PAIR, 0n, null);
  // Their memory is given back next, and there may be none instead.
  memory.input = new Uint8Array();
  memory.output = undefined;
  const size = (bio: Deno.PointerObject, bytes: number) =>
    library.BIO_ctrl(bio, SET_WRITE_BUF_SIZE, BigInt(bytes), null);
  size(inner, OUTPUT_BYTES);
  size(network, INPUT_BYTES);
  if (library.BIO_ctrl(inner, MAKE_BIO_PAIR, 0n, network) !== 1n) {
    throw lastSslError(library);
  }
  // Finding nothing in a ring is an error of the library's, for the next caller.
  library.ERR_clear_error();
  library.BIO_nwrite0(network, pointerBytes);
  memory.isSmall = false;
  memory.input = ringAt(pointer[0]!, INPUT_BYTES);
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
function ringAt(at: bigint, bytes: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(
    Deno.UnsafePointerView.getArrayBuffer(
      Deno.UnsafePointer.create(at)!,
      bytes,
    ),
  );
}
