import { assertEquals } from "@std/assert";
import { listeningInodes, portOwner } from "./port_owner.ts";

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
