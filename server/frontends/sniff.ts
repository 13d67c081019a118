/**
 * Which protocol a client speaks, by its first bytes.
 *
 * @module
 */

/** HTTP/2's connection preface begins like this (RFC 9113 §3.4). */
const PREFACE = "PRI * HTTP/2.0\r\n";

/** Methods of RFC 9110 §9 and PATCH; nothing else is HTTP/1.1 to us. */
const METHODS = [
  ...["DELETE ", "GET ", "HEAD ", "OPTIONS ", "PATCH ", "POST "],
  ...["PUT ", "TRACE "],
];

/** First byte of a TLS record that carries a handshake (RFC 8446 §5.1). */
const TLS_HANDSHAKE = 0x16;

/** See {@linkcode sniffProtocol}. */
export type SniffedProtocol = "http2" | "http1" | "tls" | "unknown";

/**
 * Recognizes the protocol by the bytes received so far.
 *
 * @returns `undefined` while they could still become HTTP/2's preface.
 */
export function sniffProtocol(bytes: Uint8Array): SniffedProtocol | undefined {
  const size = Math.min(bytes.length, PREFACE.length);
  if (size === 0) return undefined;
  for (let index = 0; index < size; index++) {
    if (bytes[index] === PREFACE.charCodeAt(index)) continue;
    if (bytes[0] === TLS_HANDSHAKE) return "tls";
    // The only method that is served, so the first to look for.
    if (beginsWith(bytes, "CONNECT ")) return "http1";
    return beginsLikeMethod(bytes) ? "http1" : "unknown";
  }
  return size === PREFACE.length ? "http2" : undefined;
}

/** So far: a method that comes byte by byte is not waited for. */
function beginsLikeMethod(bytes: Uint8Array): boolean {
  return METHODS.some((method) => beginsWith(bytes, method));
}

function beginsWith(bytes: Uint8Array, text: string): boolean {
  const size = Math.min(bytes.length, text.length);
  for (let index = 0; index < size; index++) {
    if (bytes[index] !== text.charCodeAt(index)) return false;
  }
  return true;
}
