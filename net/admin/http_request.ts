/**
 * Reads one request of a health or admin port: a short head, and a small body
 * where the method has one.
 *
 * @module
 */

import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import { BodyFraming, bodyLength, NO_BODY } from "../http1/framing.ts";
import type { Fields } from "../http1/fields.ts";
import { readHead, type RequestHead, RequestReader } from "../http1/head.ts";
import { MessageError } from "../http1/refusal.ts";
import type { Socket } from "../stream/socket.ts";

/** A question about a program, or an order to it, is a few words. */
export const HTTP_BODY_BYTES_MAX = 64 * 1024;

/** @returns `undefined` when the client left before its request. */
export async function requestHead(
  socket: Socket,
): Promise<RequestHead | MessageError | undefined> {
  try {
    return await readHead(socket, new RequestReader("GET /path"));
  } catch (error) {
    if (error instanceof MessageError) return error;
    throw error;
  }
}

/** A request with the headers that handlers read, and its body. */
export async function requestOf(
  socket: Socket,
  { method, target, fields }: RequestHead,
  signal: AbortSignal,
): Promise<Request | MessageError> {
  if (!target.startsWith("/")) return NO_REQUEST;
  try {
    const host = fields.one("host") || "localhost";
    const headers = headersOf(fields);
    const body = BODILESS.has(method)
      ? undefined
      : await readBody(socket, fields);
    return new Request(`http://${host}${target}`, {
      method,
      headers,
      signal,
      body: body ?? null,
    });
  } catch (error) {
    if (error instanceof MessageError) return error;
    // A host that is none, or a method that fetch forbids (TRACE).
    if (error instanceof TypeError) return NO_REQUEST;
    throw error;
  }
}

/** A body of these means nothing, and is not read. */
const BODILESS: ReadonlySet<string> = new Set(["GET", "HEAD"]);

/** What handlers look at, and how long it may be. */
const HEADERS: readonly (readonly [name: string, lengthMax: number])[] = [
  ["accept", 1_000],
  ["accept-encoding", 1_000],
  ["authorization", 1_000],
  ["content-type", 1_000],
  ["cookie", 4_096],
  ["if-none-match", 1_000],
  ["origin", 1_000],
  ["sec-fetch-site", 100],
  ["x-tunnel-admin", 100],
];

/**
 * A header that is there twice, or is too long, counts as absent. Its form is
 * looked at first: the platform reads blanks again for each way to part them.
 */
function headersOf(fields: Fields): Headers {
  const headers = new Headers();
  for (const [name, lengthMax] of HEADERS) {
    const [value = "", ...others] = fields.all(name);
    const isOne = others.length === 0 && value.length <= lengthMax &&
      /^[!-~ ]+$/.test(value);
    if (isOne) headers.set(name, value);
  }
  return headers;
}

async function readBody(
  socket: Socket,
  fields: Fields,
): Promise<Uint8Array<ArrayBuffer>> {
  const length = bodyLength(fields, NO_BODY);
  if (length.kind === "bytes" && length.bytes > HTTP_BODY_BYTES_MAX) {
    throw TOO_LARGE;
  }
  if (fields.list("expect").includes("100-continue")) {
    await socket.writeAll(CONTINUE);
  }
  const framing = new BodyFraming(length);
  const pieces: Uint8Array[] = [];
  let size = 0;
  while (!framing.isDone) {
    if (!await socket.fill()) throw NO_REQUEST;
    const { bytes } = socket;
    const taken = framing.take(bytes, (from, to) => {
      size += to - from;
      if (size <= HTTP_BODY_BYTES_MAX) pieces.push(bytes.slice(from, to));
    });
    socket.drop(taken);
    if (size > HTTP_BODY_BYTES_MAX) throw TOO_LARGE;
  }
  return joinedBytes(pieces);
}

const CONTINUE = new TextEncoder().encode("HTTP/1.1 100 Continue\r\n\r\n");

const TOO_LARGE = new MessageError(
  413,
  `Cannot read a body of more than ${HTTP_BODY_BYTES_MAX} bytes`,
);

const NO_REQUEST = new MessageError(
  400,
  'Cannot answer this request, wanted such as "GET /path HTTP/1.1"',
);
