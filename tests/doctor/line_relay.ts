/**
 * A TCP port in one network whose connections arrive in another one: through a unix
 * socket, which no network namespace keeps apart. What the line does to packets is
 * done to those of the port.
 *
 *     deno run line_relay.ts ADDRESS:PORT UNIX_SOCKET
 *
 * Prints a line when it listens.
 *
 * @module
 */

const [place, path] = Deno.args as [string, string];
const [hostname, port] = place.split(":") as [string, string];
const listener = Deno.listen({ hostname, port: Number(port) });
Deno.stdout.writeSync(new TextEncoder().encode("listens\n"));
for await (const near of listener) {
  relay(near).catch(() => {
    // Either end may go when it likes.
  });
}

async function relay(near: Deno.TcpConn): Promise<void> {
  const far = await Deno.connect({ transport: "unix", path });
  await Promise.all([
    near.readable.pipeTo(far.writable),
    far.readable.pipeTo(near.writable),
  ]);
}
