/**
 * An answer of a health or admin port as bytes: its head, how its end is known,
 * and gzip for long ones.
 *
 * @module
 */

import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import { reportInternalError } from "../../platform/errors/internal_errors.ts";
import { isEventStream } from "./event_stream.ts";

/** What its client can read. */
export interface AnswerForm {
  /** Without: the head alone. */
  readonly hasBody: boolean;
  readonly canChunk: boolean;
  readonly canGzip: boolean;
}

/**
 * An answer of one chunk has a length; a longer one is produced while it is
 * sent, and is framed by chunks (RFC 9112 §7.1), or for HTTP/1.0 by the end of
 * the connection.
 */
export async function* answerPieces(
  whole: Response,
  { hasBody, canChunk, canGzip }: AnswerForm,
): AsyncIterable<Uint8Array> {
  const response = canGzip && hasBody ? await packed(whole) : whole;
  const reader = response.body?.getReader();
  const chunks: Uint8Array[] = [];
  let isWhole: boolean = reader === undefined;
  const isWatched = isEventStream(response);
  while (!isWhole && chunks.length < (isWatched ? 1 : 2)) {
    const { done, value } = await nextOf(reader!);
    if (done) isWhole = true;
    else chunks.push(value);
  }
  if (isWhole) {
    const body = joinedBytes(chunks);
    const head = headBytes(response, `content-length: ${body.length}`);
    return yield hasBody ? joinedBytes([head, body]) : head;
  }
  yield headBytes(response, canChunk ? "transfer-encoding: chunked" : "");
  if (!hasBody) return await reader!.cancel();
  const framed = (chunk: Uint8Array) =>
    canChunk
      ? joinedBytes([
        encode(`${chunk.length.toString(16)}\r\n`),
        chunk,
        CHUNK_END,
      ])
      : chunk;
  for await (const chunk of all(chunks, reader!)) yield framed(chunk);
  if (canChunk) yield encode("0\r\n\r\n");
}

/** What was looked at, and what follows. */
async function* all(
  first: readonly Uint8Array[],
  reader: ReadableStreamDefaultReader<Uint8Array>,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  try {
    yield* first as readonly Uint8Array<ArrayBuffer>[];
    for (;;) {
      const { done, value } = await nextOf(reader);
      if (done) return;
      yield value as Uint8Array<ArrayBuffer>;
    }
  } finally {
    // A client that is gone reads no more. Failures are reported already.
    await reader.cancel().catch(() => {});
  }
}

/** No socket has a part in it, so what fails here is ours. */
async function nextOf(reader: ReadableStreamDefaultReader<Uint8Array>) {
  try {
    return await reader.read();
  } catch (error) {
    reportInternalError("http", error);
    throw error;
  }
}

function headBytes(response: Response, length: string): Uint8Array {
  return encode(
    [
      `HTTP/1.1 ${response.status} ${REASONS[response.status] ?? ""}`,
      ...[...response.headers].map(([name, value]) => `${name}: ${value}`),
      ...length === "" ? [] : [length],
      `date: ${new Date().toUTCString()}`,
      "connection: close",
      "\r\n",
    ].join("\r\n"),
  );
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

const CHUNK_END = encode("\r\n");

const REASONS: Readonly<Record<number, string>> = {
  200: "OK",
  204: "No Content",
  301: "Moved Permanently",
  303: "See Other",
  304: "Not Modified",
  308: "Permanent Redirect",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  409: "Conflict",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  421: "Misdirected Request",
  431: "Request Header Fields Too Large",
  429: "Too Many Requests",
  500: "Internal Server Error",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

/** Compressing less costs more than it saves. */
const PACKED_BYTES_MIN = 16 * 1024;

const PACKABLE = /^(?:application\/(?:json|javascript)|text\/(?!event-stream))/;

/**
 * The answer packed, if it is long. It is packed while it is sent: a scrape of
 * five thousand services must not keep the event loop.
 */
async function packed(response: Response): Promise<Response> {
  const { headers, status, body } = response;
  const isPackable = status === 200 && body !== null &&
    PACKABLE.test(headers.get("content-type") ?? "") &&
    !headers.has("content-encoding");
  if (!isPackable) return response;
  const reader = body.getReader();
  const first: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  while (size < PACKED_BYTES_MIN) {
    const { done, value } = await nextOf(reader);
    if (done) return new Response(joinedBytes(first), { status, headers });
    first.push(value as Uint8Array<ArrayBuffer>);
    size += value.length;
  }
  const packedHeaders = new Headers(headers);
  packedHeaders.set("content-encoding", "gzip");
  packedHeaders.set("vary", "accept-encoding");
  return new Response(
    ReadableStream.from(all(first, reader))
      .pipeThrough(new CompressionStream("gzip")),
    { status, headers: packedHeaders },
  );
}
