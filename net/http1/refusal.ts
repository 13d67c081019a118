/**
 * Errors in messages of HTTP/1.1, and refusals in HTTP/1.1.
 *
 * The reason phrase carries the sentence because kube-apiserver shows that and
 * nothing else; the body carries it too, for curl and people.
 *
 * @module
 */

import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import type { Code } from "../../proto/codes/codes.ts";
import { CODE_FIELD } from "../../proto/grpc/status_codec.ts";
import { Socket } from "../stream/socket.ts";
import type { Stream } from "../stream/stream.ts";

const encoder = new TextEncoder();

/** Longest sentence in a status line; Go reads up to 4 KiB, terminals less. */
const PHRASE_LENGTH_MAX = 300;

/** A refusal; the connection ends after it. */
export function refusalBytes(
  status: number,
  message: string,
  code?: Code,
): Uint8Array {
  const body = encoder.encode(`${message}\n`);
  const allow = status === 405 ? "Allow: CONNECT\r\n" : "";
  const head = `HTTP/1.1 ${status} ${phrase(message)}\r\n` +
    "Content-Type: text/plain; charset=utf-8\r\n" +
    "X-Content-Type-Options: nosniff\r\n" +
    (code === undefined ? "" : `${CODE_FIELD}: ${code}\r\n`) +
    `Content-Length: ${body.length}\r\n${allow}Connection: close\r\n\r\n`;
  return joinedBytes([encoder.encode(head), body]);
}

/**
 * Ends a connection that is not served.
 *
 * @param answer A refusal; absent: a peer that could not read it gets none.
 */
export async function turnAway(
  stream: Stream,
  answer?: Uint8Array,
): Promise<void> {
  const socket = new Socket(stream);
  try {
    if (answer !== undefined) await socket.writeAll(answer);
    await socket.closeWrite();
  } catch {
    // It has left already, which is as well.
  }
  socket.close();
}

/** One line of visible ASCII: nothing a peer wrote may end the status line. */
function phrase(message: string): string {
  return message.replace(/[^\x20-\x7e]+/g, " ").slice(0, PHRASE_LENGTH_MAX);
}

export class MessageError extends Error {
  override readonly name = "MessageError";

  /** @param status The status of the answer, if it can still be sent. */
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

/** A peer's text in quotes, harmless for terminals and logs, and shortened. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

/**
 * Reads it all.
 *
 * @param bytesMax What a peer may make us keep; the rest is not read.
 * @returns Nothing if it is longer.
 * @throws As `fetch`, when the connection fails.
 */
export async function responseText(
  response: Response,
  bytesMax: number,
): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let bytes = 0;
  let text = "";
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > bytesMax) return undefined;
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
