// deno-lint-ignore-file no-console -- its parent waits for the line.
/**
 * What is behind a tunnel in the documents: greets like ssh who says nothing
 * more, answers like a web server who asks.
 *
 * Usage: `deno run --allow-net lab/docs/target.ts HOST:PORT…`
 *
 * @module
 */

const ANSWER = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n" +
  "connection: close\r\n\r\nhello\n";

async function serve(conn: Deno.Conn): Promise<void> {
  try {
    const asked = await conn.read(new Uint8Array(4_096));
    const text = asked === null ? "SSH-2.0-documented\r\n" : ANSWER;
    await conn.write(new TextEncoder().encode(text));
    await conn.closeWrite();
  } catch {
    // Whoever asked has left.
  } finally {
    conn.close();
  }
}

for (const address of Deno.args) {
  const at = address.lastIndexOf(":");
  const listener = Deno.listen({
    hostname: address.slice(0, at),
    port: Number(address.slice(at + 1)),
  });
  (async () => {
    for await (const conn of listener) serve(conn);
  })();
}
console.log("answering");
