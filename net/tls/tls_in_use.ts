/**
 * Which TLS is in use, in words for the log.
 *
 * @module
 */

import { openLibssl } from "./openssl/library.ts";
import { TLS } from "../libc/choices.ts";

/** A sentence. */
export function tlsInUse(): string {
  if (TLS.word === "platform") {
    return `TLS is the platform's: $${TLS.variable} says so`;
  }
  const library = openLibssl();
  if (library === undefined) {
    return "TLS is the platform's: there is no OpenSSL 3 that may be asked";
  }
  const text = library.OpenSSL_version(VERSION_TEXT)!;
  return `TLS is that of ${Deno.UnsafePointerView.getCString(text)}`;
}

/** Whether TLS is OpenSSL's wherever it can be. */
export function isOpensslUsed(): boolean {
  return TLS.word !== "platform" && openLibssl() !== undefined;
}

/** OPENSSL_VERSION of `openssl/crypto.h`. */
const VERSION_TEXT = 0;
