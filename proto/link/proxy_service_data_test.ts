import { assert, assertEquals } from "@std/assert";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import {
  dialRequest,
  MemoryFrontend,
  udpRequest,
} from "../../tests/support/memory/memory_frontend.ts";
import { LARGE_FRAME_SIZE } from "../streams/settings.ts";
import { FIRST_HOLD_MS } from "./first_hold.ts";
import { DATAGRAM_KEPT_BYTES_MAX } from "./send_packet.ts";
import { ScriptedCaller } from "../../tests/support/watch/packet_script.ts";
import { ConnectionPair } from "../../tests/support/memory/connection_pair.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { CAPABILITIES_FIELD, PROXY_PATH } from "./capabilities.ts";
import type { DialAnswer } from "./dial_handler.ts";
import { proxyService } from "./proxy_service.ts";

Deno.test("an empty DATA of the caller's is harmless", async () => {
  const { caller, target } = await new MemoryFrontend().dialled();
  caller.data(1, "");
  await caller.data(1, "after");
  assertEquals(target.text, "after");
  assertEquals(target.hasEnded, false);
});

Deno.test("what a target says first waits for a Go caller", async (t) => {
  await t.step("until it speaks", async () => {
    const { caller, target } = await new MemoryFrontend().dialled();
    await target.send("banner");
    assertEquals(caller.received, ["DIAL_RSP 1 ok"]);
    await caller.data(1, "hello");
    assertEquals(caller.received[1], 'DATA 1 "banner"');
  });
  await t.step("no longer than the hold", async () => {
    const frontend = new MemoryFrontend();
    const { caller, target } = await frontend.dialled();
    target.send("banner");
    await target.finish();
    await frontend.timers.advance(FIRST_HOLD_MS - 1);
    assertEquals(caller.received.length, 1);
    await frontend.timers.advance(1);
    assertEquals(caller.received.slice(1), ['DATA 1 "banner"', 'DATA 1 ""']);
  });
  await t.step("even when it says nothing but its end", async () => {
    const frontend = new MemoryFrontend();
    const { caller, target } = await frontend.dialled();
    await target.finish();
    assertEquals(caller.received.length, 1);
    await frontend.timers.advance(FIRST_HOLD_MS);
    assertEquals(caller.received.slice(1), ['DATA 1 ""']);
  });
  await t.step("and never for ours", async () => {
    const frontend = new MemoryFrontend();
    const caller = frontend.ourCaller();
    await caller.say(dialRequest);
    await frontend.connect().send("banner");
    assertEquals(caller.received, ["DIAL_RSP 1 ok", 'DATA 1 "banner"']);
  });
});

Deno.test("DATA for Go callers is at most 32 KiB a packet", async () => {
  const { caller, target } = await new MemoryFrontend().dialled();
  caller.data(1, "go");
  await target.send(new Uint8Array(200_000));
  assertEquals(caller.bytes, 200_000);
  assert(caller.received.length > 200_000 / 32_768);
});

Deno.test("DATA for our callers fills the frame that they take", async () => {
  const frontend = new MemoryFrontend({
    settings: { maxFrameSize: LARGE_FRAME_SIZE },
  });
  const caller = frontend.ourCaller();
  await caller.say(dialRequest);
  await frontend.connect().send(new Uint8Array(65_000));
  assertEquals(caller.bytes, 65_000);
  assertEquals(caller.received.length, 2);
});

Deno.test("a DATA message longer than any datagram is dropped whole", async () => {
  const frontend = new MemoryFrontend();
  const caller = frontend.goCaller();
  await caller.say(udpRequest);
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
  await caller.say(udpRequest);
  const target = frontend.connect(true);
  for (let i = 0; i < 100; i++) {
    await target.send(new Uint8Array(10_000));
  }
  const kept = 1_000_000 - frontend.observer.dropped * 10_000;
  const window = 65_535;
  assert(kept > DATAGRAM_KEPT_BYTES_MAX, `${kept}`);
  assert(kept < DATAGRAM_KEPT_BYTES_MAX + window + 10_000, `${kept}`);
});

/** A connected caller that reads nothing, and its target. */
async function stalled(
  call: (frontend: MemoryFrontend) => ScriptedCaller,
): Promise<{ caller: ScriptedCaller; target: ConduitProbe }> {
  const frontend = new MemoryFrontend();
  const caller = call(frontend);
  caller.isReading = false;
  await caller.say(dialRequest);
  const target = frontend.connect();
  frontend.timers.advance(FIRST_HOLD_MS);
  return { caller, target };
}

const CALLERS = {
  Go: (frontend: MemoryFrontend) => frontend.goCaller(),
  ours: (frontend: MemoryFrontend) => frontend.ourCaller(),
};

for (const [name, call] of Object.entries(CALLERS)) {
  Deno.test(`a caller (${name}) that reads nothing is sent a reset all the same`, async () => {
    // What is left of the window decides whether a packet had to be kept in
    // front of the status.
    for (let spareBytes = 0; spareBytes < 128; spareBytes += 3) {
      const { caller, target } = await stalled(call);
      await target.send(new Uint8Array(65_535 - 128 + spareBytes));
      await target.send(new Uint8Array(1024 * 1024));
      await target.reset("gave up");
      assertEquals(caller.received.at(-1), "status ABORTED gave up");
    }
  });
}

/** A callee whose dials take early data, and a caller of ours. */
async function dialing(protocol: "tcp" | "udp", roomBytes: number) {
  const timers = new FakeTimers();
  const scene = { roomBytes, early: [] as string[] };
  let answer: DialAnswer | undefined;
  const method = proxyService({
    timers,
    onDial(_target, given) {
      answer = given;
      return {
        cancel() {},
        sendEarly(bytes) {
          if (bytes.length > scene.roomBytes) return 0;
          scene.roomBytes -= bytes.length;
          scene.early.push(new TextDecoder().decode(bytes));
          return bytes.length;
        },
      };
    },
  });
  const pair = new ConnectionPair({
    clock: timers,
    methods: { [PROXY_PATH]: method },
  });
  const caller = new ScriptedCaller(pair.client, PROXY_PATH, {
    [CAPABILITIES_FIELD]: "half-close",
  });
  const address = "10.0.0.1:443";
  await caller.say({ type: "DIAL_REQ", protocol, address, random: 1 });
  /** Answers the dial. @returns The target. */
  const connect = async () => {
    const [near, far] = MemoryConduit.pair({ datagrams: protocol === "udp" });
    const target = new ConduitProbe(far);
    answer!.connected(near);
    await settled();
    return target;
  };
  return { scene, caller, connect };
}

Deno.test("early data that missed the dial follows it, and the rest stays in order", async () => {
  const { scene, caller, connect } = await dialing("tcp", 8);
  for (const text of ["one ", "two ", "three ", "four"]) {
    await caller.data(0, text);
  }
  scene.roomBytes = 100;
  await caller.data(0, " five");
  assertEquals(scene.early, ["one ", "two "]);
  assertEquals((await connect()).text, "three four five");
});

Deno.test("datagrams that missed the dial keep their borders", async () => {
  const { scene, caller, connect } = await dialing("udp", 100_000);
  const inPieces = "x".repeat(40_000);
  for (const text of ["one", inPieces, "two"]) {
    await caller.data(0, text);
  }
  const { chunks } = await connect();
  assertEquals(scene.early, ["one"], "one in pieces waits, and what follows");
  assertEquals(chunks.map(({ length }) => length), [40_000, 3]);
});
