import { assertEquals } from "@std/assert";
import { MemoryTransport } from "../../tests/support/memory/memory_transport.ts";
import { ANONYMOUS } from "../../proto/peer/peer_identity.ts";
import { ServerCalls } from "./server_calls.ts";

Deno.test("a road hears of its connection when it is made, and of the next", async () => {
  const used: unknown[] = [];
  const calls = new ServerCalls({
    authority: "tunnel-server",
    scheme: "https",
    connect(use) {
      const [, ours] = MemoryTransport.pair("h2", ANONYMOUS);
      return Promise.resolve(use(ours));
    },
    used: (connection) => void used.push(connection),
  });
  const first = await calls.connection();
  // One stream may be all that is ever wanted of it.
  assertEquals(used, [first]);
  assertEquals(await calls.connection(), first);
  calls.leave(first);
  const second = await calls.connection();
  assertEquals(used, [first, second]);
  calls.close("the test is over");
});
