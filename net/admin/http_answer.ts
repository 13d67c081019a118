/**
 * An answer of a health or admin port as bytes: its head, how its end is known,
 * and gzip for long ones.
 *
 * @module
 */

import { reportInternalError } from "../../platform/errors/internal_errors.ts";
import { jsonText } from "../../platform/text/printable.ts";
import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";

/** What its client can read. */
export interface AnswerForm {
  /** Without: the head alone. */
  readonly hasBody: boolean;
  readonly canChunk: boolean;
  readonly canGzip: boolean;
}

/**
 * An answer of one chunk has a length; a longer one is made while it is sent,
 * and is framed by chunks (RFC 9112 §7.1), or for HTTP/1.0 by the end of the
 * connection.
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
  try {
    for (const chunk of chunks) yield framed(chunk);
    for (;;) {
      const { done, value } = await nextOf(reader!);
      if (done) break;
      yield framed(value);
    }
  } finally {
    // A client that is gone reads no more. Failures are reported already.
    await reader!.cancel().catch(() => {});
  }
  if (canChunk) yield encode("0\r\n\r\n");
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

/** To pack less costs more than it saves. */
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
  const source = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      const next = first.shift();
      if (next !== undefined) return controller.enqueue(next);
      const { done, value } = await nextOf(reader);
      if (done) controller.close();
      else controller.enqueue(value as Uint8Array<ArrayBuffer>);
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 });
  const packedHeaders = new Headers(headers);
  packedHeaders.set("content-encoding", "gzip");
  packedHeaders.set("vary", "accept-encoding");
  return new Response(
    source.pipeThrough(new CompressionStream("gzip")),
    { status, headers: packedHeaders },
  );
}

/** One event. */
export interface SentEvent {
  /** No line breaks; ours. */
  readonly name: string;
  /** Becomes JSON. */
  readonly data: unknown;
}

/** Silence after which a comment is sent: proxies and clients give up at 30 s. */
const HEARTBEAT_MS = 15_000;

/**
 * @param next What there is to say since it was asked last; it may wait until
 *   there is something. `undefined`: all is said.
 * @param signal The client is gone; `next` should not wait any more.
 */
export function eventAnswer(
  next: () => Promise<readonly SentEvent[] | undefined>,
  signal: AbortSignal,
  heartbeatMs: number = HEARTBEAT_MS,
): Response {
  const encoder = new TextEncoder();
  let waiting: Promise<readonly SentEvent[] | undefined> | undefined;
  let isFirst = true;
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      if (isFirst) {
        isFirst = false;
        // The head leaves at once, whenever there is something to say.
        return controller.enqueue(encoder.encode(": ok\n\n"));
      }
      waiting ??= next();
      const events = await orHeartbeat(waiting, heartbeatMs, signal);
      if (events === HEARTBEAT) return controller.enqueue(BEAT);
      waiting = undefined;
      if (events === undefined) return controller.close();
      const text = events.map(eventText).join("");
      controller.enqueue(text === "" ? BEAT : encoder.encode(text));
    },
  }, { highWaterMark: 0 });
  return new Response(body, {
    headers: {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    },
  });
}

/** Whether an answer goes on until its client is gone. */
export function isEventStream({ headers }: Response): boolean {
  return headers.get("content-type") === "text/event-stream";
}

/** As it is sent. */
function eventText({ name, data }: SentEvent): string {
  return `event: ${name}\ndata: ${jsonText(data)}\n\n`;
}

const BEAT = new TextEncoder().encode(": beat\n\n");

const HEARTBEAT = "heartbeat";

async function orHeartbeat<T>(
  promise: Promise<T>,
  ms: number,
  signal: AbortSignal,
): Promise<T | typeof HEARTBEAT | undefined> {
  const other = Promise.withResolvers<typeof HEARTBEAT | undefined>();
  const timer = setTimeout(() => other.resolve(HEARTBEAT), ms);
  const gone = () => other.resolve(undefined);
  if (signal.aborted) gone();
  signal.addEventListener("abort", gone);
  try {
    return await Promise.race([promise, other.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", gone);
  }
}
