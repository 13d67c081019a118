/**
 * Heads of HTTP/1.1 messages, read from their lines.
 *
 * @module
 */

import {
  type RequestHead,
  RequestReader,
  type ResponseHead,
  ResponseReader,
} from "../../../net/http1/head.ts";

/** @param lines Request line and field lines, bytes as code points. */
export function requestHeadOf(...lines: readonly string[]): RequestHead {
  return new RequestReader("GET /path").push(bytesOf(lines))!.head;
}

/** @param lines Status line and field lines, bytes as code points. */
export function responseHeadOf(...lines: readonly string[]): ResponseHead {
  return new ResponseReader("the peer").push(bytesOf(lines))!.head;
}

function bytesOf(lines: readonly string[]): Uint8Array {
  const text = `${lines.join("\r\n")}\r\n\r\n`;
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}
