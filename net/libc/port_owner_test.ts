import { assertEquals } from "@std/assert";
import {
  connectedUser,
  kernelForms,
  listeningInodes,
  listeningUsers,
  portOwner,
  usersIn,
} from "./port_owner.ts";

/** A row of the kernel's table, as far as it is read. */
const row = (local: string, state: string, user: number) =>
  `   0: ${local} 00000000:0000 ${state} 0:0 00:0 0 ${user} 0 1${user} 1 0 10 0`;

const TABLE = [
  "  sl  local_address rem_address   st tx_queue rx_queue …",
  row("0100007F:1F9B", "0A", 1001),
  row("0100007F:1F9B", "01", 1002),
  row("0100007F:1F9C", "0A", 1003),
  row("0200007F:1F9B", "0A", 1004),
  row("00000000:1F9B", "0A", 1005),
  row("00000000000000000000000000000000:1F9B", "0A", 1006),
  row("0000000000000000FFFF00000100007F:1F9B", "0A", 1007),
  row("00000000000000000000000001000000:1F9B", "0A", 1008),
].join("\n");

function test(
  name: string,
  use: (listener: Deno.TcpListener, port: number) => void | Promise<void>,
): void {
  Deno.test({
    name,
    ignore: Deno.build.os !== "linux",
    fn: () => {
      const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
      return use(listener, listener.addr.port);
    },
  });
}

Deno.test("a table of sockets says who listens on a port, and who does not", () => {
  assertEquals(listeningInodes(TABLE, 8092), ["11003"]);
  assertEquals(listeningInodes(TABLE, 8091).length, 6);
  assertEquals(listeningInodes(TABLE, 54321), []);
  assertEquals(listeningInodes("", 8091), []);
});

Deno.test("a table says whose sockets take connections to an address", () => {
  const users = (host: string) => usersIn(TABLE, kernelForms(host), 8091);
  assertEquals(users("127.0.0.1"), [1001, 1005, 1006, 1007]);
  assertEquals(users("::ffff:127.0.0.1"), [1001, 1005, 1006, 1007]);
  assertEquals(users("::1"), [1005, 1006, 1008]);
});

test(
  "this process and user are found by a port on which they listen",
  (listener, port) => {
    assertEquals(portOwner(port)?.pid, Deno.pid);
    assertEquals(listeningUsers("127.0.0.1", port), [Deno.uid()!]);
    listener.close();
    assertEquals(portOwner(port), undefined);
    assertEquals(listeningUsers("127.0.0.1", port), []);
  },
);

test(
  "this user is known by his end of a connection",
  async (listener, port) => {
    const near = await Deno.connect({ port });
    const far = await listener.accept();
    assertEquals(connectedUser(near.localAddr.port, port), Deno.uid()!);
    assertEquals(
      connectedUser(near.localAddr.port, near.localAddr.port),
      undefined,
    );
    for (const one of [near, far, listener]) one.close();
  },
);
