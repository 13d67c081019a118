import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { ConduitProbe } from "../tests/support/memory/conduit_probe.ts";
import { MemoryConduit } from "../tests/support/memory/memory_conduit.ts";
import { TunnelResetError } from "./dial_error.ts";
import { addrOf } from "./tunnel_conn.ts";
import { TUNNEL_WAITING_MAX, TunnelDatagrams } from "./tunnel_datagrams.ts";

function open() {
  const [ours, theirs] = MemoryConduit.pair({ datagrams: true });
  const flow = new TunnelDatagrams(ours, addrOf("udp", "10.0.0.7:53"));
  return { flow, ours, far: new ConduitProbe(theirs) };
}

const encode = (text: string) => new TextEncoder().encode(text);

Deno.test("datagrams stay whole, both ways", async () => {
  const { flow, ours, far } = open();
  flow.send(encode("one"));
  flow.send(encode("two"));
  await far.received(6);
  far.send("three");
  await far.send("four");
  assertEquals(await flow.receive(), encode("three"));
  assertEquals(await flow.receive(), encode("four"));
  assertEquals(ours.unconsumedBytes, 0);
  assertEquals(flow.remoteAddr.port, 53);
});

Deno.test("datagrams are received one by one, until there are no more", async () => {
  const { flow, far } = open();
  const received: string[] = [];
  const receiving = (async () => {
    for await (const one of flow) received.push(new TextDecoder().decode(one));
  })();
  assertThrows(() => flow.receive(), TypeError, "another receive");
  far.send("a");
  far.send("b");
  far.finish();
  await receiving;
  assertEquals(received, ["a", "b"]);
});

Deno.test("a flood of empty datagrams that nobody receives takes no more memory", async () => {
  const { flow, far } = open();
  for (let count = 0; count < TUNNEL_WAITING_MAX + 10; count++) far.send("");
  await far.finish();
  let received = 0;
  for await (const one of flow) received += one.length === 0 ? 1 : 0;
  assertEquals(received, TUNNEL_WAITING_MAX);
});

Deno.test("what is larger than UDP is not sent", () => {
  const { flow } = open();
  assertThrows(
    () => flow.send(new Uint8Array(65_508)),
    RangeError,
    "65508 bytes",
  );
});

Deno.test("a flow that goes out of scope is over, on both ends", async () => {
  const { flow, far } = open();
  let waiting: Promise<unknown>;
  {
    await using inner = flow;
    waiting = inner.receive();
    waiting.catch(() => {});
  }
  await assertRejects(() => waiting, TunnelResetError, "closed by its user");
  await far.closed;
  assertThrows(() => flow.send(encode("late")), TunnelResetError);
});
