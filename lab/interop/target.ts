/**
 * What stands at the far end of the tunnels under test: an HTTP server and an
 * echoing TCP server, both with contents that can be checked.
 *
 * - `GET /bytes/N?from=K` gives N bytes of a random block, from offset K.
 * - `POST /upload` answers the SHA-256 of the body, in hexadecimal.
 * - The echo wants a length (u64), gives that many bytes back as they come,
 *   and then closes.
 *
 * @module
 */

import { randomBytes } from "node:crypto";
import { freePort } from "../../tests/support/program/ports.ts";
import { arrivals, writeAll } from "../../tests/support/peers/sockets.ts";

/** The largest `from` + N that `/bytes` serves. */
export const BLOCK_BYTES = 21 * 1024 * 1024;

export interface Target {
  readonly httpPort: number;
  readonly echoPort: number;
  /** What `GET /bytes/{bytes}?from={from}` gives. */
  block(bytes: number, from?: number): Uint8Array<ArrayBuffer>;
  /** How many HTTP requests have been answered so far. */
  httpRequests(): number;
  close(): Promise<void>;
}

export function startTarget(): Target {
  const content = new Uint8Array(randomBytes(BLOCK_BYTES));
  const block = (bytes: number, from = 0) =>
    content.subarray(from, from + bytes);
  let requests = 0;
  const http = Deno.serve(
    { hostname: "127.0.0.1", port: freePort(), onListen: () => {} },
    (request) => {
      requests++;
      return answer(request, block);
    },
  );
  const echo = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const echoing = acceptEchoes(echo);
  return {
    httpPort: http.addr.port,
    echoPort: echo.addr.port,
    block,
    httpRequests: () => requests,
    async close() {
      echo.close();
      await echoing;
      await http.shutdown();
    },
  };
}

async function answer(
  request: Request,
  block: Target["block"],
): Promise<Response> {
  const url = new URL(request.url);
  const bytes = /^\/bytes\/(\d+)$/.exec(url.pathname);
  if (request.method === "GET" && bytes !== null) {
    const from = Number(url.searchParams.get("from") ?? 0);
    return new Response(block(Number(bytes[1]), from));
  }
  if (request.method === "POST" && url.pathname === "/upload") {
    return new Response(await sha256(await request.bytes()));
  }
  return new Response("no such thing", { status: 404 });
}

async function acceptEchoes(listener: Deno.Listener): Promise<void> {
  for await (const conn of arrivals(listener)) {
    // A client that breaks off sees it by itself and reports it.
    echo(conn).catch(() => {}).finally(() => conn.close());
  }
}

async function echo(conn: Deno.Conn): Promise<void> {
  const head = new Uint8Array(8);
  for (let at = 0; at < head.length;) {
    const count = await conn.read(head.subarray(at));
    if (count === null) return;
    at += count;
  }
  let left = Number(new DataView(head.buffer).getBigUint64(0));
  const buffer = new Uint8Array(64 * 1024);
  while (left > 0) {
    const count = await conn.read(buffer);
    if (count === null) return;
    await writeAll(conn, buffer.subarray(0, count));
    left -= count;
  }
}

/** In hexadecimal. */
export async function sha256(
  bytes: Uint8Array<ArrayBuffer>,
): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return new Uint8Array(digest).toHex();
}

/** The u64 that the echo wants first. */
export function echoHead(bytes: number): Uint8Array<ArrayBuffer> {
  const head = new Uint8Array(8);
  new DataView(head.buffer).setBigUint64(0, BigInt(bytes));
  return head;
}
