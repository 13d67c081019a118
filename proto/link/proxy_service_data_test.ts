import { assert, assertEquals } from "@std/assert";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import {
  dialRequest,
  MemoryFrontend,
  udpRequest,
} from "../../tests/support/memory/memory_frontend.ts";
import { LARGE_FRAME_SIZE } from "../streams/settings.ts";
import { FIRST_HOLD_MS } from "./first_hold.ts";
import { DATAGRAM_KEPT_BYTES_MAX } from "./send_packet.ts";

Deno.test("an empty DATA of the caller's is harmless", async () => {
  const { caller, target } = await new MemoryFrontend().dialled();
  caller.data(1, "");
  caller.data(1, "after");
  await settled();
  assertEquals(target.text, "after");
  assertEquals(target.hasEnded, false);
});

Deno.test("what a target says first waits for a Go caller", async (t) => {
  await t.step("until it speaks", async () => {
    const { caller, target } = await new MemoryFrontend().dialled();
    target.send("banner");
    await settled();
    assertEquals(caller.received, ["DIAL_RSP 1 ok"]);
    caller.data(1, "hello");
    await settled();
    assertEquals(caller.received[1], 'DATA 1 "banner"');
  });
  await t.step("no longer than the hold", async () => {
    const frontend = new MemoryFrontend();
    const { caller, target } = await frontend.dialled();
    target.send("banner");
    target.finish();
    await settled();
    frontend.timers.advance(FIRST_HOLD_MS - 1);
    await settled();
    assertEquals(caller.received.length, 1);
    frontend.timers.advance(1);
    await settled();
    assertEquals(caller.received.slice(1), ['DATA 1 "banner"', 'DATA 1 ""']);
  });
  await t.step("even when it says nothing but its end", async () => {
    const frontend = new MemoryFrontend();
    const { caller, target } = await frontend.dialled();
    target.finish();
    await settled();
    assertEquals(caller.received.length, 1);
    frontend.timers.advance(FIRST_HOLD_MS);
    await settled();
    assertEquals(caller.received.slice(1), ['DATA 1 ""']);
  });
  await t.step("and never for ours", async () => {
    const frontend = new MemoryFrontend();
    const caller = frontend.ourCaller();
    caller.say(dialRequest);
    await settled();
    frontend.connect().send("banner");
    await settled();
    assertEquals(caller.received, ["DIAL_RSP 1 ok", 'DATA 1 "banner"']);
  });
});

Deno.test("one DATA message of 5 MiB reaches the target", async () => {
  const { caller, target } = await new MemoryFrontend().dialled();
  caller.data(1, new Uint8Array(5 * 1024 * 1024));
  await target.received(5 * 1024 * 1024);
});

Deno.test("DATA for Go callers is at most 32 KiB a packet", async () => {
  const { caller, target } = await new MemoryFrontend().dialled();
  caller.data(1, "go");
  target.send(new Uint8Array(200_000));
  await settled();
  assertEquals(caller.bytes, 200_000);
  assert(caller.received.length > 200_000 / 32_768);
});

Deno.test("DATA for our callers fills the frame that they take", async () => {
  const frontend = new MemoryFrontend({
    settings: { maxFrameSize: LARGE_FRAME_SIZE },
  });
  const caller = frontend.ourCaller();
  caller.say(dialRequest);
  await settled();
  frontend.connect().send(new Uint8Array(65_000));
  await settled();
  assertEquals(caller.bytes, 65_000);
  assertEquals(caller.received.length, 2);
});

Deno.test("a DATA message longer than any datagram is dropped whole", async () => {
  const frontend = new MemoryFrontend();
  const caller = frontend.goCaller();
  caller.say(udpRequest);
  await settled();
  const target = frontend.connect(true);
  await settled();
  caller.data(1, new Uint8Array(200_000));
  caller.data(1, "short");
  await target.received(5);
  assertEquals(target.text, "short");
  assertEquals(frontend.observer.dropped, 1);
});

Deno.test("datagrams for a caller that takes none are dropped, over a bound", async () => {
  const frontend = new MemoryFrontend();
  const caller = frontend.goCaller();
  caller.isReading = false;
  caller.say(udpRequest);
  await settled();
  const target = frontend.connect(true);
  for (let i = 0; i < 100; i++) {
    target.send(new Uint8Array(10_000));
    await settled();
  }
  const kept = 1_000_000 - frontend.observer.dropped * 10_000;
  const window = 65_535;
  assert(kept > DATAGRAM_KEPT_BYTES_MAX, `${kept}`);
  assert(kept < DATAGRAM_KEPT_BYTES_MAX + window + 10_000, `${kept}`);
});
