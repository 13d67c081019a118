import { assertEquals } from "@std/assert";
import { listeningInodes, portOwner } from "./port_owner.ts";

const TABLE =
  `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F9B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F9B 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000000000000000 20 4 30 10 -1
   2: 00000000000000000000000000000000:1F9B 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4713 1
`;

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
