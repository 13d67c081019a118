/**
 * One TLS connection, without a socket: what the peer sent goes in, what the
 * peer is to get comes out, and octets in the clear on the other side.
 *
 * It knows nothing of sockets or of waiting. Both directions have a ring of
 * fixed size in the library's memory, which the caller reads into and writes
 * from directly, so that a record is copied once on its way.
 *
 * @module
 */

import { isIP } from "node:net";
import { derOf, type Shaking, shaking } from "./handshake_callbacks.ts";
import { cText, type LibSsl } from "./library.ts";
import type { SecureContext } from "./secure_context.ts";
import { lastSslError, SslError, verifyCode } from "./ssl_error.ts";

/** What is written at once; more waits for the next call. */
export const CLEAR_OCTETS_MAX = 64 * 1024;

/** TLS's own limit for one record (RFC 8446 §5.1). */
const RECORD_OCTETS_MAX = 16 * 1024;

/** Header, explicit nonce, type and tag, with room to spare (RFC 5246 §6.2.3). */
const RECORD_EXTRA_OCTETS = 64;

/** What `write` makes of `CLEAR_OCTETS_MAX`, and an alert or two behind it. */
const OUTPUT_OCTETS = CLEAR_OCTETS_MAX +
  (CLEAR_OCTETS_MAX / RECORD_OCTETS_MAX + 2) * RECORD_EXTRA_OCTETS;

/** What is taken from a socket at once. */
const INPUT_OCTETS = 64 * 1024;

/** What a read finds when it finds no octets. */
export const HUNGRY = -1;

/** From `openssl/ssl.h`. */
const ERROR_WANT_READ = 2;
const ERROR_ZERO_RETURN = 6;
const CTRL_SERVER_NAME = 55;
/** No names in the subject, and no `*` in the middle of one (as Go, rustls). */
const HOST_FLAGS = 0x20 | 0x4;

/** See the module description. */
export class SecureSession {
  readonly #library: LibSsl;
  readonly #context: SecureContext;
  readonly #contextFor: (name: string) => SecureContext | undefined;
  /** Of the library; `undefined` when they are freed. */
  #memory: Memory | undefined;
  #other: SecureContext | undefined;
  #refusal:
    | { outcome: number; certificate: Uint8Array<ArrayBuffer> }
    | undefined;
  #error: SslError | undefined;

  /**
   * @param peer For a client, the name or address that the server's certificate
   *   must be for; for a server, what else to be for those who ask by that name.
   */
  constructor(
    context: SecureContext,
    peer: {
      readonly serverName?: string;
      readonly contextFor?: (name: string) => SecureContext | undefined;
    } = {},
  ) {
    this.#library = context.library;
    this.#context = context;
    this.#contextFor = peer.contextFor ?? (() => undefined);
    this.#memory = allocate(context);
    const { ssl } = this.#memory;
    if (context.role.kind === "server") {
      this.#library.SSL_set_accept_state(ssl);
      return;
    }
    this.#library.SSL_set_connect_state(ssl);
    this.#expect(peer.serverName ?? "");
  }

  /** Why `handshake` refused the peer's certificate, and which one (DER). */
  get refusedCertificate(): Uint8Array<ArrayBuffer> | undefined {
    return this.#refusal?.certificate;
  }

  /** Where to put what the peer sends; whole when all was taken from it. */
  get input(): Uint8Array<ArrayBuffer> {
    return this.#memory!.input;
  }

  /**
   * The peer sent so many octets, at the beginning of `input`.
   * To be called only when the session was hungry.
   */
  received(octets: number): void {
    const { network, pointerOctets } = this.#memory!;
    this.#library.BIO_nwrite(network, pointerOctets, octets);
  }

  /** What the peer is to get next; empty: nothing. */
  get output(): Uint8Array<ArrayBuffer> {
    const memory = this.#memory!;
    const { network, pointer, pointerOctets } = memory;
    const length = this.#library.BIO_nread0(network, pointerOctets);
    if (length <= 0) return NOTHING;
    // The first octet of all stands where the ring begins.
    const { at: begin, ring } = memory.output ??= {
      at: pointer[0]!,
      ring: ringAt(pointer[0]!, OUTPUT_OCTETS),
    };
    const at = Number(pointer[0]! - begin);
    return ring.subarray(at, at + length);
  }

  /** So many octets of `output` are on their way. */
  sent(octets: number): void {
    const { network, pointerOctets } = this.#memory!;
    this.#library.BIO_nread(network, pointerOctets, octets);
  }

  /**
   * Goes on with the handshake.
   *
   * @returns Whether it is complete; if not, it is hungry.
   * @throws {SslError} There may be an alert to send all the same.
   */
  shakeHands(): boolean {
    const { ssl } = this.#open();
    const outcome = shaking(
      this.#shaking(),
      () => this.#library.SSL_do_handshake(ssl),
    );
    if (outcome === 1) return true;
    if (this.#errorOf(outcome) === ERROR_WANT_READ) return false;
    throw this.#fail();
  }

  /**
   * Reads octets in the clear: at most a record of them.
   *
   * @returns How many; 0 when the peer said goodbye; {@linkcode HUNGRY} when it
   *   must say more first.
   * @throws {SslError}
   */
  read(into: Uint8Array<ArrayBuffer>): number {
    const { ssl } = this.#open();
    const count = this.#library.SSL_read(ssl, into, into.length);
    if (count > 0) return count;
    switch (this.#errorOf(count)) {
      case ERROR_WANT_READ:
        return HUNGRY;
      case ERROR_ZERO_RETURN:
        return 0;
      default:
        throw this.#fail();
    }
  }

  /**
   * Writes octets in the clear; to be called only when there is no output.
   *
   * @returns How many were taken.
   * @throws {SslError}
   */
  write(octets: Uint8Array<ArrayBuffer>): number {
    const { ssl } = this.#open();
    const length = Math.min(octets.length, CLEAR_OCTETS_MAX);
    const count = this.#library.SSL_write(ssl, octets, length);
    if (count > 0) return count;
    throw this.#fail();
  }

  /** Says goodbye: there is output then. */
  end(): void {
    const { ssl } = this.#open();
    this.#library.SSL_shutdown(ssl);
    this.#library.ERR_clear_error();
  }

  /** What was agreed upon; empty: nothing. */
  get alpn(): string {
    const { ssl, pointer, pointerOctets } = this.#open();
    this.#library.SSL_get0_alpn_selected(ssl, pointerOctets, lengthOctets);
    const at = Deno.UnsafePointer.create(pointer[0]!);
    if (at === null || length[0] === 0) return "";
    return new TextDecoder().decode(
      Deno.UnsafePointerView.getArrayBuffer(at, length[0]!),
    );
  }

  /** What the client called us (SNI); empty when it did not. */
  get serverName(): string {
    const name = this.#library.SSL_get_servername(this.#open().ssl, 0);
    return name === null ? "" : Deno.UnsafePointerView.getCString(name);
  }

  /** The certificate that the peer proved to be its own (DER); empty: none. */
  get peerCertificate(): Uint8Array<ArrayBuffer> {
    const library = this.#library;
    const certificate = library.SSL_get1_peer_certificate(this.#open().ssl);
    const der = derOf(library, certificate);
    library.X509_free(certificate);
    return der;
  }

  /** Frees what the library has of it. Harmless a second time. */
  free(): void {
    const memory = this.#memory;
    if (memory === undefined) return;
    this.#memory = undefined;
    this.#library.SSL_free(memory.ssl); // And its end of the pair.
    this.#library.BIO_free(memory.network);
  }

  /** The library must not be asked again after an error (SSL_get_error(3)). */
  #open(): Memory {
    if (this.#error !== undefined) throw this.#error;
    return this.#memory!;
  }

  #errorOf(outcome: number): number {
    return this.#library.SSL_get_error(this.#memory!.ssl, outcome);
  }

  #fail(): SslError {
    const error = lastSslError(this.#library);
    const refusal = this.#refusal;
    return this.#error = refusal === undefined
      ? error
      : new SslError(verifyCode(refusal.outcome), error.message);
  }

  #expect(serverName: string): void {
    const library = this.#library;
    const { ssl } = this.#memory!;
    const name = cText(serverName);
    if (isIP(serverName) !== 0) {
      const parameters = library.SSL_get0_param(ssl);
      this.#check(library.X509_VERIFY_PARAM_set1_ip_asc(parameters, name));
      return; // Only names may be sent (RFC 6066 §3).
    }
    library.SSL_set_hostflags(ssl, HOST_FLAGS);
    this.#check(library.SSL_set1_host(ssl, name));
    this.#check(Number(library.SSL_ctrl(ssl, CTRL_SERVER_NAME, 0n, name)));
  }

  #shaking(): Shaking {
    return {
      alpn: this.#context.alpn,
      contextFor: (name) => {
        // Kept here, for the library has but a pointer to it.
        this.#other = this.#contextFor(name);
        return this.#other?.pointer;
      },
      refused: (outcome, certificate) => {
        this.#refusal ??= { outcome, certificate };
      },
    };
  }

  #check(outcome: number): void {
    if (outcome > 0) return;
    const error = lastSslError(this.#library);
    this.free();
    throw error;
  }
}

/** What a session has in the library's memory. */
interface Memory {
  readonly ssl: Deno.PointerObject;
  /** Our end of the pair whose other end TLS reads and writes. */
  readonly network: Deno.PointerObject;
  readonly input: Uint8Array<ArrayBuffer>;
  output?: { readonly at: bigint; readonly ring: Uint8Array<ArrayBuffer> };
  /** Where calls leave a pointer. */
  readonly pointer: BigUint64Array<ArrayBuffer>;
  readonly pointerOctets: Uint8Array<ArrayBuffer>;
}

const NOTHING = new Uint8Array();
const length = new Uint32Array(1);
const lengthOctets = new Uint8Array(length.buffer);

/** Must be longer than what the platform moves about with small arrays. */
const pointerWords = 16;

function allocate({ library, pointer: context }: SecureContext): Memory {
  const ssl = library.SSL_new(context);
  if (ssl === null) throw lastSslError(library);
  const pointer = new BigUint64Array(pointerWords);
  const pointerOctets = new Uint8Array(pointer.buffer);
  const made = library.BIO_new_bio_pair(
    pointerOctets.subarray(0, 8),
    BigInt(OUTPUT_OCTETS),
    pointerOctets.subarray(8, 16),
    BigInt(INPUT_OCTETS),
  );
  if (made !== 1) {
    library.SSL_free(ssl);
    throw lastSslError(library);
  }
  const inner = Deno.UnsafePointer.create(pointer[0]!)!;
  const network = Deno.UnsafePointer.create(pointer[1]!)!;
  library.SSL_set_bio(ssl, inner, inner);
  library.BIO_nwrite0(network, pointerOctets);
  const input = ringAt(pointer[0]!, INPUT_OCTETS);
  return { ssl, network, input, pointer, pointerOctets };
}

/** Memory of the library, as long as the session is not freed. */
function ringAt(at: bigint, octets: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(
    Deno.UnsafePointerView.getArrayBuffer(
      Deno.UnsafePointer.create(at)!,
      octets,
    ),
  );
}
