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
const row = (local: string, state: string, inode: number) =>
  `   0: ${local} 00000000:0000 ${state} 0:0 00:0 0 0 0 ${inode} 1 0000 100 0`;

const TABLE = [
  "  sl  local_address rem_address   st tx_queue rx_queue …",
  row("0100007F:1F9B", "0A", 4711),
  row("0100007F:1F9B", "01", 4712),
  row("00000000000000000000000000000000:1F9B", "0A", 4713),
].join("\n");

Deno.test("a table of sockets says who listens on a port, and who does not", () => {
  assertEquals(listeningInodes(TABLE, 8091), ["4711", "4713"]);
  assertEquals(listeningInodes(TABLE, 54321), []);
  assertEquals(listeningInodes("", 8091), []);
});

Deno.test({
  name: "this process is found by a port on which it listens",
  ignore: Deno.build.os !== "linux",
  fn() {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = listener.addr as Deno.NetAddr;
    assertEquals(portOwner(port)?.pid, Deno.pid);
    listener.close();
    assertEquals(portOwner(port), undefined);
  },
});

Deno.test("a table says whose sockets take connections to an address", () => {
  const of = (local: string, state: string, uid: number) =>
    `   0: ${local} 00000000:0000 ${state} 0:0 00:0 0 ${uid} 0 9 1 0000 100 0`;
  const table = [
    "  sl  local_address rem_address   st tx_queue rx_queue …",
    of("0100007F:1F9B", "0A", 1001),
    of("0100007F:1F9B", "01", 1002),
    of("0100007F:1F9C", "0A", 1003),
    of("0200007F:1F9B", "0A", 1004),
    of("00000000:1F9B", "0A", 1005),
    of("00000000000000000000000000000000:1F9B", "0A", 1006),
    of("0000000000000000FFFF00000100007F:1F9B", "0A", 1007),
    of("00000000000000000000000001000000:1F9B", "0A", 1008),
  ].join("\n");
  const users = (host: string) => usersIn(table, kernelForms(host), 8091);
  assertEquals(users("127.0.0.1"), [1001, 1005, 1006, 1007]);
  assertEquals(users("::ffff:127.0.0.1"), [1001, 1005, 1006, 1007]);
  assertEquals(users("::1"), [1005, 1006, 1008]);
});

Deno.test({
  name: "this user is known by a port on which he listens",
  ignore: Deno.build.os !== "linux",
  fn() {
    const hostname = "127.0.0.1";
    const listener = Deno.listen({ hostname, port: 0 });
    const { port } = listener.addr as Deno.NetAddr;
    assertEquals(listeningUsers(hostname, port), [Deno.uid()!]);
    listener.close();
    assertEquals(listeningUsers(hostname, port), []);
  },
});

Deno.test({
  name: "this user is known by his end of a connection",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = listener.addr as Deno.NetAddr;
    const near = await Deno.connect({ hostname: "127.0.0.1", port });
    const far = await listener.accept();
    const from = (near.localAddr as Deno.NetAddr).port;
    assertEquals(connectedUser(from, port), Deno.uid()!);
    assertEquals(connectedUser(from, from), undefined);
    for (const one of [near, far, listener]) one.close();
  },
});
