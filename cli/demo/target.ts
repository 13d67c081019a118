/**
 * What the demo dials: a stand-in for somebody's program on a node. It reads
 * lines with a number and answers each with that many bytes.
 *
 * It knows nothing of the tunnel and uses none of its code, not even to listen.
 *
 * @module
 */

const CHUNK = new Uint8Array(65_536).fill(0x2e);

/** A line is a number; what is longer is not from the demo. */
const LINE_BYTES_MAX = 32;

/** Listens on loopback; gives the port. Serves until the process ends. */
export function startTarget(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  // deno-lint-ignore tunnel/no-void-promise -- it uses nothing of the tunnel.
  void acceptAll(listener);
  return listener.addr.port;
}

/** The request for `bytes`. */
export function targetRequest(bytes: number): Uint8Array {
  return new TextEncoder().encode(`${bytes}\n`);
}

async function acceptAll(listener: Deno.TcpListener): Promise<void> {
  for (;;) {
    // One that has gone again by now, or goes in the middle, is its own business.
    const conn = await listener.accept().catch(() => undefined);
    if (conn === undefined) continue;
    serve(conn).catch(() => {}).finally(() => close(conn));
  }
}

async function serve(conn: Deno.Conn): Promise<void> {
  const chunk = new Uint8Array(1024);
  const decoder = new TextDecoder();
  let line = "";
  for (;;) {
    const count = await conn.read(chunk);
    if (count === null) return;
    line += decoder.decode(chunk.subarray(0, count));
    for (let end = line.indexOf("\n"); end >= 0; end = line.indexOf("\n")) {
      await send(conn, Number(line.slice(0, end)));
      line = line.slice(end + 1);
    }
    if (line.length > LINE_BYTES_MAX) return;
  }
}

async function send(conn: Deno.Conn, bytes: number): Promise<void> {
  for (let left = bytes; left > 0;) {
    left -= await conn.write(CHUNK.subarray(0, Math.min(left, CHUNK.length)));
  }
}

function close(conn: Deno.Conn): void {
  try {
    conn.close();
  } catch (error) {
    // Closed by the platform already, after an error.
    if (!(error instanceof Deno.errors.BadResource)) throw error;
  }
}
