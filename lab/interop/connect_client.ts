/**
 * HTTP CONNECT by hand, byte by byte: what stands behind the answer's head is
 * left alone.
 *
 * @module
 */

import { writeAll } from "../../tests/support/peers/sockets.ts";

/** Asks for `to`; `conn` leads there when this returns. */
export async function connectThrough(
  conn: Deno.Conn,
  to: string,
): Promise<void> {
  const request = `CONNECT ${to} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;
  await writeAll(conn, new TextEncoder().encode(request));
  let head = "";
  const byte = new Uint8Array(1); // Nothing behind the head may be taken.
  while (!head.endsWith("\r\n\r\n")) {
    if (await conn.read(byte) === null) {
      throw new Error(`CONNECT: the answer ended after "${head}"`);
    }
    head += String.fromCharCode(byte[0]!);
  }
  if (!head.startsWith("HTTP/1.1 200 ")) {
    throw new Error(`CONNECT: answered "${head.trim()}"`);
  }
}
