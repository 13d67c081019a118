/**
 * Answers plain HTTP/1.1 without authentication: health, metrics, admin.
 *
 * The platform's own server lets a client hold a connection for ever without a
 * byte, which costs a descriptor, and a process without descriptors serves no
 * one. So each connection gets one short request, one answer and a deadline,
 * and there are only so many: the oldest goes for the next.
 *
 * A body is small or refused, and connections are not kept.
 *
 * @module
 */

import { joinedBytes } from "../../proto/bytes/joined_bytes.ts";
import {
  INTERNAL_ERROR,
  reportInternalError,
} from "../../platform/errors/internal_errors.ts";
import { MessageError } from "../http1/message_error.ts";
import { Socket } from "../stream/socket.ts";
import type { Stream } from "../stream/stream.ts";
import { readHead, requestOf } from "./http_request.ts";

/** Connections at once: a probe or a scrape takes milliseconds. */
export const HTTP_CONNECTIONS_MAX = 256;

/** From the first to the last byte, both ways. */
export const HTTP_DEADLINE_MS = 10_000;

const LONG_ANSWERS = new WeakMap<Response, number>();

/** An answer that takes so much longer than others may. */
export function longAnswer(response: Response, extraMs: number): Response {
  LONG_ANSWERS.set(response, extraMs);
  return response;
}

/** The other end, as far as its connection says who it is. */
export type HttpPeer = Pick<
  Stream,
  "remoteAddress" | "identity" | "peerCredentials"
>;

/** Answers one request, whose signal says that the client is gone. */
export type HttpHandler = (
  request: Request,
  peer: HttpPeer,
) => Response | Promise<Response>;

export class HttpPort {
  readonly #handler: HttpHandler;
  readonly #evicted: () => void;
  /** The oldest first. */
  readonly #open = new Set<Socket>();

  /** @param evicted A connection was ended to make room for another. */
  constructor(handler: HttpHandler, evicted: () => void = () => {}) {
    this.#handler = handler;
    this.#evicted = evicted;
  }

  /** How many are connected. */
  get connections(): number {
    return this.#open.size;
  }

  /** Serves one accepted connection until it ends. */
  async accept(stream: Stream): Promise<void> {
    const socket = new Socket(stream);
    if (this.#open.size >= HTTP_CONNECTIONS_MAX) this.#evictOldest();
    this.#open.add(socket);
    let deadline = setTimeout(() => socket.close(), HTTP_DEADLINE_MS);
    try {
      await this.#serve(socket, (extraMs) => {
        clearTimeout(deadline);
        const ms = HTTP_DEADLINE_MS + extraMs;
        deadline = setTimeout(() => socket.close(), ms);
      });
    } catch {
      // The client is gone, or was too slow; there is nowhere to report it.
    } finally {
      clearTimeout(deadline);
      this.#open.delete(socket);
      socket.close();
    }
  }

  /** Ends every connection. */
  close(): void {
    for (const socket of this.#open) socket.close();
  }

  async #answer(request: Request, peer: HttpPeer): Promise<Response> {
    try {
      return await this.#handler(request, peer);
    } catch (error) {
      reportInternalError("http", error);
      return plain(500, `${INTERNAL_ERROR}\n`);
    }
  }

  #evictOldest(): void {
    const [oldest] = this.#open;
    this.#open.delete(oldest!);
    oldest!.close();
    this.#evicted();
  }

  async #serve(
    socket: Socket,
    extend: (extraMs: number) => void,
  ): Promise<void> {
    const read = await readHead(socket);
    if (read === undefined) return;
    const head = read instanceof MessageError ? read : read.head;
    const gone = new AbortController();
    const request = read instanceof MessageError
      ? read
      : await requestOf(socket, read, gone.signal);
    const response = request instanceof MessageError
      ? plain(request.status, `${request.message}\n`)
      : await this.#answer(request, socket.stream);
    const extraMs = LONG_ANSWERS.get(response);
    if (extraMs !== undefined) extend(extraMs);
    const canChunk = !(head instanceof MessageError) && head.version === "1.1";
    const hasBody = request instanceof MessageError ||
      request.method !== "HEAD";
    for await (const bytes of answerPieces(response, hasBody, canChunk)) {
      await socket.writeAll(bytes);
    }
    await socket.closeWrite();
    // Closing with bytes unread would destroy the answer under way.
    const rest = new Uint8Array(1024);
    while (await socket.read(rest) !== null);
  }
}

/**
 * An answer of one chunk has a length; a longer one is made while it is sent,
 * and is framed by chunks (RFC 9112 §7.1), or for HTTP/1.0 by the end of the
 * connection.
 */
async function* answerPieces(
  response: Response,
  hasBody: boolean,
  canChunk: boolean,
): AsyncIterable<Uint8Array> {
  const reader = response.body?.getReader();
  const chunks: Uint8Array[] = [];
  let isWhole = reader === undefined;
  while (!isWhole && chunks.length < 2) {
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

function plain(status: number, body: string): Response {
  return new Response(body, { status });
}
