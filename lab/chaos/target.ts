// deno-lint-ignore-file no-console -- a program that says where it listens.
/**
 * What callers talk to behind an agent: says from where it was dialed, a line,
 * and then echoes until the caller ends.
 *
 * Usage: `target.ts ADDRESS PORT`.
 *
 * @module
 */

import { arrivals } from "../../tests/support/peers/sockets.ts";

const [hostname, port] = Deno.args as [string, string];
const listener = Deno.listen({ hostname, port: Number(port) });
console.log("listening");
for await (const conn of arrivals(listener)) {
  conn.setNoDelay(true);
  void serve(conn);
}

async function serve(conn: Deno.TcpConn): Promise<void> {
  const { hostname } = conn.remoteAddr;
  try {
    await conn.write(new TextEncoder().encode(`${hostname}\n`));
    await conn.readable.pipeTo(conn.writable);
  } catch {
    // The caller, or the agent before us, has gone: callers count that.
  }
}
