/**
 * The callbacks of OpenSSL's handshake.
 *
 * OpenSSL calls them on this thread, within `SSL_do_handshake` and nowhere
 * else, so a variable holds the handshake; the functions are made once and
 * serve all connections. What is not understood is refused.
 *
 * @module
 */

import { reportInternalError } from "../../../platform/errors/internal_errors.ts";
import { pointerTo } from "../../libc/system_error.ts";
import type { LibSsl } from "./library.ts";

/** Whose handshake is running. */
export interface RunningHandshake {
  /** In order of preference, as in a ClientHello. */
  readonly alpn: Uint8Array<ArrayBuffer>;
  /**
   * The name in the client's SNI: returns the context to go on with, if it is
   * another one.
   */
  contextFor?(serverName: string): Deno.PointerObject | undefined;
  /**
   * Whether the peer's own certificate, if it is otherwise valid, has the
   * expected name; absent: the library checks that.
   */
  isExpected?(certificate: Deno.PointerValue): boolean;
  /** Verification failed so; DER of the peer's own certificate. */
  refused(outcome: number, certificate: Uint8Array<ArrayBuffer>): void;
}

/** In C's types. */
export interface HandshakeCallbacks {
  readonly message: Deno.PointerObject;
  readonly verified: Deno.PointerObject;
  readonly protocol: Deno.PointerObject;
  readonly serverName: Deno.PointerObject;
}

/** From `openssl/tls1.h`. */
const TLSEXT_OK = 0;
const TLSEXT_FATAL = 2;
const TLSEXT_NOT_SPOKEN = 3;

let current: RunningHandshake | undefined;
let callbacks: HandshakeCallbacks | undefined;

/** Runs a call in which OpenSSL may call back. */
export function duringHandshake<T>(
  running: RunningHandshake,
  call: () => T,
): T {
  current = running;
  try {
    return call();
  } finally {
    current = undefined;
  }
}

/** Made at the first call. */
export function handshakeCallbacks(library: LibSsl): HandshakeCallbacks {
  return callbacks ??= {
    message: messageCallback(),
    verified: verifiedCallback(library),
    protocol: protocolCallback(),
    serverName: serverNameCallback(library),
  };
}

/**
 * Set to false before a call, it is true behind one that has dealt with a
 * message of TLS's own: new keys, a ticket, an alert. For sessions that watch
 * for them.
 */
export const messages = { wereSeen: false };

/** `SSL_set_info_callback(3)`: called for each step of such a message. */
function messageCallback(): Deno.PointerObject {
  return new Deno.UnsafeCallback(
    { parameters: ["pointer", "i32", "i32"], result: "void" },
    () => {
      messages.wereSeen = true;
    },
  ).pointer;
}

/** X509_V_ERR_HOSTNAME_MISMATCH of `openssl/x509_vfy.h`. */
const NAME_MISMATCH = 62;

/**
 * `SSL_verify_cb`: keeps the reason for our sentences; it never accepts a
 * certificate that OpenSSL refused.
 */
function verifiedCallback(library: LibSsl): Deno.PointerObject {
  return new Deno.UnsafeCallback(
    { parameters: ["i32", "pointer"], result: "i32" },
    (isGood, context) => {
      if (isGood === 1 && current?.isExpected === undefined) return 1;
      return orElse(0, () => {
        if (isGood === 1) {
          if (library.X509_STORE_CTX_get_error_depth(context) > 0) return 1;
          const own = library.X509_STORE_CTX_get0_cert(context);
          if (current?.isExpected?.(own)) return 1;
          library.X509_STORE_CTX_set_error(context, NAME_MISMATCH);
        }
        current?.refused(
          library.X509_STORE_CTX_get_error(context),
          derOf(library, library.X509_STORE_CTX_get0_cert(context)),
        );
        return 0;
      });
    },
  ).pointer;
}

/** `SSL_CTX_alpn_select_cb_func`: the first of ours that the client offers. */
function protocolCallback(): Deno.PointerObject {
  return new Deno.UnsafeCallback(
    {
      parameters: [
        "pointer",
        "pointer",
        "pointer",
        "pointer",
        "u32",
        "pointer",
      ],
      result: "i32",
    },
    (_ssl, chosen, chosenLength, offered, offeredLength) => {
      if (offered === null || chosen === null || chosenLength === null) {
        return TLSEXT_FATAL;
      }
      return orElse(TLSEXT_FATAL, () => {
        const theirs = viewOf(offered, offeredLength);
        for (const [at, length] of entries(current?.alpn ?? NOTHING)) {
          const ours = current!.alpn.subarray(at, at + length);
          const found = find(theirs, ours);
          if (found === undefined) continue;
          const where = Deno.UnsafePointer.value(offered) + BigInt(found);
          new DataView(viewOf(chosen, 8).buffer).setBigUint64(0, where, true);
          viewOf(chosenLength, 1)[0] = length;
          return TLSEXT_OK;
        }
        return TLSEXT_FATAL;
      });
    },
  ).pointer;
}

function serverNameCallback(library: LibSsl): Deno.PointerObject {
  return new Deno.UnsafeCallback(
    { parameters: ["pointer", "pointer", "pointer"], result: "i32" },
    (ssl) => {
      const name = library.SSL_get_servername(ssl, 0);
      if (name === null) return TLSEXT_NOT_SPOKEN;
      return orElse(TLSEXT_FATAL, () => {
        const text = Deno.UnsafePointerView.getCString(name);
        const other = current?.contextFor?.(text);
        if (other !== undefined) library.SSL_set_SSL_CTX(ssl, other);
        return TLSEXT_OK;
      });
    },
  ).pointer;
}

/**
 * An error must not pass through C's frames, whose result would then be
 * undefined: an internal error refuses.
 */
function orElse(refusal: number, answer: () => number): number {
  try {
    return answer();
  } catch (error) {
    reportInternalError("callback", error);
    return refusal;
  }
}

/** DER of a certificate; empty without one. */
export function derOf(
  library: LibSsl,
  certificate: Deno.PointerValue,
): Uint8Array<ArrayBuffer> {
  if (certificate === null) return NOTHING;
  const length = library.i2d_X509(certificate, null);
  if (length <= 0) return NOTHING;
  const der = new Uint8Array(length);
  // It writes where the pointer points, and moves the pointer on.
  pointers[0] = BigInt(pointerTo(der));
  library.i2d_X509(certificate, pointerBytes);
  return der;
}

const NOTHING = new Uint8Array();
const pointers = new BigUint64Array(1);
const pointerBytes = new Uint8Array(pointers.buffer);

function viewOf(pointer: Deno.PointerObject, length: number): Uint8Array {
  return new Uint8Array(
    Deno.UnsafePointerView.getArrayBuffer(pointer, length),
  );
}

/** Where each protocol of a list is, and how long. */
function* entries(
  list: Uint8Array,
): Generator<[at: number, length: number]> {
  for (let at = 0; at < list.length; at += list[at]! + 1) {
    yield [at + 1, list[at]!];
  }
}

function find(list: Uint8Array, wanted: Uint8Array): number | undefined {
  for (const [at, length] of entries(list)) {
    if (length !== wanted.length) continue;
    if (wanted.every((byte, index) => list[at + index] === byte)) return at;
  }
  return undefined;
}
