/**
 * One TLS connection, without a socket: records of the peer go in, records for
 * the peer come out, and plaintext is on the other side.
 *
 * It knows nothing of sockets or of waiting. Both directions have a ring in the
 * library's memory, which the caller reads into and writes from directly, so that
 * a record is copied once on its way.
 *
 * @module
 */

import { isIP } from "node:net";
import {
  type BucketSize,
  TokenBucket,
} from "../../../proto/streams/token_bucket.ts";
import {
  derOf,
  duringHandshake,
  handshakeCallbacks,
  messages,
  type RunningHandshake,
} from "./handshake_callbacks.ts";
import type { LibSsl } from "./library.ts";
import { cText } from "../../libc/libc.ts";
import type { SecureContext } from "./secure_context.ts";
import {
  allocateSession,
  CLEAR_BYTES_MAX,
  enlargeRings,
  isMuch,
  outputOf,
  pointer,
  pointerBytes,
  RECORD_BYTES_MAX,
  releaseSession,
  type SessionMemory,
} from "./session_memory.ts";
import { SslError } from "../trust/ssl_error.ts";
import { lastSslError, verifyError } from "./error_queue.ts";

/** The peer must send more first. */
export const WANT_READ = -1;

/** The result of a call when output must leave first. */
export const WANT_WRITE = -2;

/** How far a handshake is. */
export type HandshakeResult = "complete" | typeof WANT_READ | typeof WANT_WRITE;

/**
 * Messages of TLS's own behind the handshake. New keys (RFC 8446 §4.6.3) are 27
 * bytes for the sender and 0.15 ms for us; honest peers change keys once in
 * hours or gigabytes, and send a few tickets at the beginning.
 */
export const MESSAGES_MAX: BucketSize = { burst: 32, perSecond: 1 };

/**
 * Records that we write with the same keys. AES-GCM allows 2^24.5 of them (RFC
 * 8446 §5.5), some 388 GB, and a link may last for years; the library leaves
 * the change of keys to us. TLS 1.2 has none.
 */
export const RECORDS_PER_KEY: number = 2 ** 23;

/** From `openssl/ssl.h`. */
const KEY_UPDATE_NOT_REQUESTED = 0;
const ERROR_WANT_READ = 2;
const ERROR_WANT_WRITE = 3;
const ERROR_ZERO_RETURN = 6;
const CTRL_SERVER_NAME = 55;
/** No names in the subject, and no `*` in the middle of one (as Go, rustls). */
const HOST_FLAGS = 0x20 | 0x4;

export class SecureSession {
  readonly #library: LibSsl;
  readonly #contextFor: (name: string) => SecureContext | undefined;
  /** Pointers of the library; `undefined` when they are freed. */
  #memory: SessionMemory | undefined;
  #other: SecureContext | undefined;
  #refusal:
    | { outcome: number; certificate: Uint8Array<ArrayBuffer> }
    | undefined;
  #error: SslError | undefined;
  readonly #recordsPerKey: number;
  #records = 0;
  /** The small ring was: there is more. */
  #wasFilled = false;
  /** See {@linkcode MESSAGES_MAX}; made for the first one. */
  #messages: TokenBucket | undefined;

  /** Names of which the certificate must bear one; the library knows a single one. */
  #expected: readonly string[] | undefined;
  #wasExpected = false;

  /**
   * @param peer For a client, the name or address that the server's certificate
   *   must have, and others of which any one does as well; for a server,
   *   another context for clients that send that name. `recordsPerKey` is for
   *   tests of the end.
   */
  constructor(
    private readonly context: SecureContext,
    peer: {
      readonly serverName?: string;
      readonly otherNames?: readonly string[];
      readonly contextFor?: (name: string) => SecureContext | undefined;
      readonly recordsPerKey?: number;
    } = {},
  ) {
    this.#recordsPerKey = peer.recordsPerKey ?? RECORDS_PER_KEY;
    this.#library = context.library;
    this.#contextFor = peer.contextFor ?? (() => undefined);
    this.#memory = allocateSession(context);
    const { ssl } = this.#memory;
    if (context.role.kind === "server") {
      this.#library.SSL_set_accept_state(ssl);
      return;
    }
    this.#library.SSL_set_connect_state(ssl);
    this.#expect(peer.serverName ?? "", peer.otherNames ?? []);
  }

  /** Why `handshake` refused the peer's certificate, and which one (DER). */
  get refusedCertificate(): Uint8Array<ArrayBuffer> | undefined {
    return this.#refusal?.certificate;
  }

  /** The buffer for the peer's bytes; empty when all were taken. */
  get input(): Uint8Array<ArrayBuffer> {
    const memory = this.#living;
    if (this.#wasFilled) this.#enlarge(memory);
    return memory.input;
  }

  /**
   * The peer's bytes were written to the beginning of `input`. Only to be
   * called when the session was hungry.
   */
  received(bytes: number): void {
    const { network, input, isSmall } = this.#living;
    this.#library.BIO_nwrite(network, pointerBytes, bytes);
    this.#wasFilled = isSmall && bytes === input.length;
  }

  /** What the peer is to get next, until the next call of any kind; empty: nothing. */
  get output(): Uint8Array<ArrayBuffer> {
    return outputOf(this.#library, this.#living) ?? NOTHING;
  }

  /** So many bytes of `output` are on their way. */
  sent(bytes: number): void {
    const { network } = this.#living;
    this.#library.BIO_nread(network, pointerBytes, bytes);
  }

  /**
   * Goes on with the handshake.
   *
   * @throws {SslError} There may be an alert to send all the same.
   */
  doHandshake(): HandshakeResult {
    const { ssl } = this.#open();
    const outcome = duringHandshake(
      this.#runningHandshake(),
      () => this.#library.SSL_do_handshake(ssl),
    );
    if (outcome !== 1) return this.#lacking(outcome);
    // Errors of a failed attempt; the next call would take them for its own.
    this.#library.ERR_clear_error();
    if (this.#expected !== undefined && !this.#wasExpected) {
      throw this.#error = new SslError(
        "",
        "TLS failed: names were not compared",
      );
    }
    const { message } = handshakeCallbacks(this.#library);
    this.#library.SSL_set_info_callback(ssl, message);
    return "complete";
  }

  /**
   * Reads bytes in the clear: at most a record of them.
   *
   * @param into Must not be empty.
   * @returns How many; 0 after the peer's close_notify; {@linkcode WANT_READ}
   *   or {@linkcode WANT_WRITE}.
   * @throws {SslError} There may be an alert to send all the same.
   */
  read(into: Uint8Array<ArrayBuffer>): number {
    const { ssl, network } = this.#open();
    for (;;) {
      messages.wereSeen = false;
      const count = this.#library.SSL_read(ssl, into, into.length);
      if (count > 0) return count;
      if (this.#errorOf(count) === ERROR_ZERO_RETURN) return 0;
      const lacking = this.#lacking(count);
      if (lacking !== WANT_READ || !messages.wereSeen) return lacking;
      this.#count();
      if (this.#library.BIO_ctrl_wpending(network) === 0n) return WANT_READ;
    }
  }

  /**
   * Writes bytes in the clear; to be called only when there is no output.
   *
   * @param bytes Must not be empty. Where none were taken, the same ones, or a
   *   copy, must come next.
   * @returns How many were taken; {@linkcode WANT_READ} in the middle of a message
   *   of TLS's own from the peer, or {@linkcode WANT_WRITE}.
   * @throws {SslError}
   */
  write(bytes: Uint8Array<ArrayBuffer>): number {
    const memory = this.#open();
    const { ssl } = memory;
    if (memory.isSmall && isMuch(bytes.length)) this.#enlarge(memory);
    const length = Math.min(bytes.length, CLEAR_BYTES_MAX);
    const count = this.#library.SSL_write(ssl, bytes, length);
    if (count <= 0) return this.#lacking(count);
    this.#records += Math.ceil(count / RECORD_BYTES_MAX);
    if (this.#records >= this.#recordsPerKey) this.#changeKeys(ssl);
    return count;
  }

  #enlarge(memory: SessionMemory): void {
    this.#wasFilled = false;
    try {
      enlargeRings(this.#library, memory);
    } catch (error) {
      throw this.#error = error as SslError;
    }
  }

  /** The peer receives that before the next byte. */
  #changeKeys(ssl: Deno.PointerObject): void {
    this.#records = 0;
    this.#library.SSL_key_update(ssl, KEY_UPDATE_NOT_REQUESTED);
    this.#library.ERR_clear_error();
  }

  /**
   * Sends close_notify: there is output then.
   *
   * @returns False: other output must leave first, then call again.
   */
  end(): boolean {
    const library = this.#library;
    const { ssl } = this.#open();
    let outcome = library.SSL_shutdown(ssl);
    if (outcome < 0) {
      // An answer of TLS's own is half written, and goes first.
      library.ERR_clear_error();
      outcome = library.SSL_do_handshake(ssl);
      if (outcome === 1) outcome = library.SSL_shutdown(ssl);
    }
    const isFull = outcome < 0 && this.#errorOf(outcome) === ERROR_WANT_WRITE;
    library.ERR_clear_error();
    return !isFull;
  }

  /** The agreed protocol; empty: none. */
  get alpn(): string {
    const { ssl } = this.#open();
    this.#library.SSL_get0_alpn_selected(ssl, pointerBytes, lengthBytes);
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

  /**
   * The peer's certificate, if it was verified (DER); empty: there is none, or
   * it was not verified.
   */
  get peerCertificate(): Uint8Array<ArrayBuffer> {
    const library = this.#library;
    const { role } = this.context;
    if (role.kind === "client" && role.isUnverified) return NOTHING;
    const certificate = library.SSL_get1_peer_certificate(this.#open().ssl);
    const der = derOf(library, certificate);
    library.X509_free(certificate);
    return der;
  }

  /** What a server has shown, its own certificate first (DER), good or not. */
  get shownCertificates(): readonly Uint8Array<ArrayBuffer>[] {
    const library = this.#library;
    const chain = library.SSL_get_peer_cert_chain(this.#open().ssl);
    if (chain === null) return [];
    const count = Math.min(library.OPENSSL_sk_num(chain), CHAIN_MAX);
    return Array.from(
      { length: count },
      (_, index) => derOf(library, library.OPENSSL_sk_value(chain, index)),
    );
  }

  /** Frees what the library has of it. Harmless a second time. */
  free(): void {
    const memory = this.#memory;
    if (memory === undefined) return;
    this.#memory = undefined;
    releaseSession(this.#library, memory);
  }

  /** The library must not be called again after an error (SSL_get_error(3)). */
  #open(): SessionMemory {
    if (this.#error !== undefined) throw this.#error;
    return this.#living;
  }

  /** @throws {TypeError} Its memory may be another's by now. */
  get #living(): SessionMemory {
    if (this.#memory !== undefined) return this.#memory;
    throw new TypeError("Cannot use a TLS session that was freed");
  }

  #errorOf(outcome: number): number {
    return this.#library.SSL_get_error(this.#living.ssl, outcome);
  }

  /** The bytes that it needs to continue. */
  #lacking(outcome: number): typeof WANT_READ | typeof WANT_WRITE {
    switch (this.#errorOf(outcome)) {
      case ERROR_WANT_READ:
        return WANT_READ;
      case ERROR_WANT_WRITE:
        return WANT_WRITE;
      default:
        throw this.#fail();
    }
  }

  #count(): void {
    const nowMs = performance.now();
    this.#messages ??= new TokenBucket(MESSAGES_MAX, nowMs);
    if (this.#messages.spend(nowMs)) return;
    throw this.#error = new SslError(
      "ERR_TLS_TOO_MANY_MESSAGES",
      "TLS peer asks for new keys too often",
    );
  }

  #fail(): SslError {
    const error = lastSslError(this.#library);
    const refusal = this.#refusal;
    return this.#error = refusal === undefined
      ? error
      : verifyError(this.#library, refusal.outcome, refusal.certificate);
  }

  #expect(serverName: string, otherNames: readonly string[]): void {
    const library = this.#library;
    const { ssl } = this.#living;
    const { role } = this.context;
    const isVerified = role.kind === "client" && !role.isUnverified;
    const names = [serverName, ...otherNames];
    const odd = names.find((name) => !isExpectable(name));
    if (isVerified && odd !== undefined) {
      this.free();
      throw new SslError("", `no name to verify a server by: "${odd}"`);
    }
    const name = nameText(serverName);
    if (isVerified && otherNames.length > 0) this.#expected = names;
    else if (isVerified && isIP(serverName) !== 0) {
      const parameters = library.SSL_get0_param(ssl);
      this.#check(library.X509_VERIFY_PARAM_set1_ip_asc(parameters, name));
    } else if (isVerified) {
      library.SSL_set_hostflags(ssl, HOST_FLAGS);
      this.#check(library.SSL_set1_host(ssl, name));
    }
    // Only names may be sent (RFC 6066 §3).
    if (isIP(serverName) !== 0 || !isExpectable(serverName)) return;
    this.#check(Number(library.SSL_ctrl(ssl, CTRL_SERVER_NAME, 0n, name)));
  }

  #isFor(certificate: Deno.PointerValue, name: string): boolean {
    const library = this.#library;
    const text = nameText(name);
    const outcome = isIP(name) !== 0
      ? library.X509_check_ip_asc(certificate, text, 0)
      // 0: as long as C says.
      : library.X509_check_host(certificate, text, 0n, HOST_FLAGS, null);
    return outcome === 1;
  }

  #runningHandshake(): RunningHandshake {
    const expected = this.#expected;
    return {
      alpn: this.context.alpn,
      ...(expected === undefined ? {} : {
        isExpected: (certificate) => {
          this.#wasExpected = expected
            .some((name) => this.#isFor(certificate, name));
          return this.#wasExpected;
        },
      }),
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

/**
 * Whether the library will look for just that: it verifies nothing without a
 * name, takes a leading dot for any name below, and C texts end early.
 */
function isExpectable(serverName: string): boolean {
  return /^[^.\0][^\0]*$/.test(serverName);
}

/** The dot of the root belongs neither in SNI nor in a certificate. */
function nameText(name: string): Uint8Array<ArrayBuffer> {
  return cText(name.replace(/\.$/, ""));
}

/** Certificates that are read; more than any chain needs. */
const CHAIN_MAX = 16;

const NOTHING = new Uint8Array();
const length = new Uint32Array(1);
const lengthBytes = new Uint8Array(length.buffer);
