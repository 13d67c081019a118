import { assert, assertEquals } from "@std/assert";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import {
  closeRequest,
  dialRequest,
  MemoryFrontend,
} from "../../tests/support/memory/memory_frontend.ts";
import type { ScriptedCaller } from "../../tests/support/watch/packet_script.ts";
import { GONE_LINGER_BYTES_MAX, GONE_LINGER_MS } from "./packet_conduit.ts";

Deno.test("a Go caller's connection closes in order (TestServerProxyNormalClose)", async () => {
  const { caller, target } = await new MemoryFrontend().dialled();
  caller.data(1, "hello");
  await caller.say(closeRequest(1));
  assertEquals(caller.received, ["DIAL_RSP 1 ok", "CLOSE_RSP 1", "status OK"]);
  assertEquals(target.text, "hello");
  assertEquals(target.hasEnded, true);
  target.send("nobody reads this");
  target.finish();
  assertEquals(await target.closed, { kind: "clean" });
});

Deno.test("what a Go caller sent before it went is delivered", async (t) => {
  const ways: Record<
    string,
    (caller: ScriptedCaller, f: MemoryFrontend) => void
  > = {
    "END_STREAM": (caller) => caller.call.halfClose(),
    "RST_STREAM": (caller) => caller.call.cancel(),
    "CLOSE_REQ and RST_STREAM, as kube-apiserver": (caller) => {
      caller.say(closeRequest(1));
      caller.call.cancel();
    },
    "CLOSE_REQ and GOAWAY, as kube-apiserver": (caller, { pair }) => {
      caller.say(closeRequest(1));
      pair.client.shutdown("client transport shutdown");
    },
  };
  for (const [name, leave] of Object.entries(ways)) {
    await t.step(name, async () => {
      const frontend = new MemoryFrontend();
      const { caller, target } = await frontend.dialled();
      // Less than a window, so that it has all left when the caller goes.
      await caller.data(1, new Uint8Array(50_000));
      await caller.data(1, "last words");
      leave(caller, frontend);
      await settled();
      assertEquals(target.receivedBytes, 50_010);
      assertEquals(target.hasEnded, true);
      target.finish();
      assertEquals(await target.closed, { kind: "clean" });
    });
  }
});

Deno.test("a target learns whether its caller has gone or only half-closed", async () => {
  const frontend = new MemoryFrontend();
  const endedBy = async (
    caller: ScriptedCaller,
    leave: () => void,
  ): Promise<unknown> => {
    await caller.say(dialRequest);
    const [near, far] = MemoryConduit.pair();
    const probe = new ConduitProbe(far);
    const ends: unknown[] = [];
    const end = near.end.bind(near);
    near.end = (isGone?: boolean) => {
      ends.push(isGone);
      end();
    };
    frontend.answers.at(-1)!.connected(near);
    await settled();
    leave();
    await probe.ended;
    return ends;
  };
  const [closing, ending, cancelling] = [
    frontend.goCaller(),
    frontend.goCaller(),
    frontend.goCaller(),
  ];
  const first = await endedBy(closing, () => closing.say(closeRequest(1)));
  assertEquals(first, [true]);
  const leave = () => ending.call.halfClose();
  assertEquals(await endedBy(ending, leave), [true]);
  const giveUp = () => cancelling.call.cancel();
  assertEquals(await endedBy(cancelling, giveUp), [true]);
  const ours = frontend.ourCaller();
  assertEquals(await endedBy(ours, () => ours.call.halfClose()), [false]);
});

Deno.test("what a Go caller sent is delivered to a slow target even when the link breaks", async () => {
  const frontend = new MemoryFrontend();
  const { caller, target } = await frontend.dialled();
  target.stopReading();
  caller.data(1, new Uint8Array(60_000));
  caller.data(1, "last words");
  await caller.say(closeRequest(1));
  await frontend.pair.break("EOF");
  assertEquals(target.end, undefined);
  await target.startReading();
  assertEquals(target.receivedBytes, 60_010);
  assertEquals(target.hasEnded, true);
});

Deno.test("a target that goes on after its Go caller went is reset, soon", async (t) => {
  await t.step("when it says too much", async () => {
    const { caller, target } = await new MemoryFrontend().dialled();
    await caller.say(closeRequest(1));
    await target.send(new Uint8Array(GONE_LINGER_BYTES_MAX));
    assertEquals(target.end, undefined);
    await target.send("x");
    assertEquals(target.end?.kind, "reset");
  });
  await t.step("when it was waiting for the caller to read", async () => {
    const frontend = new MemoryFrontend();
    const { caller, target } = await frontend.dialled();
    caller.isReading = false;
    caller.data(1, "x");
    await target.send(new Uint8Array(4 * GONE_LINGER_BYTES_MAX));
    assert(target.queuedBytes > 2 * GONE_LINGER_BYTES_MAX);
    await caller.say(closeRequest(1));
    assertEquals(target.end?.kind, "reset");
  });
  await t.step("but not while it reads what came before", async () => {
    const frontend = new MemoryFrontend();
    const { caller, target } = await frontend.dialled();
    target.stopReading();
    caller.data(1, new Uint8Array(130_000));
    await caller.say(closeRequest(1));
    frontend.timers.advance(GONE_LINGER_MS - 1);
    target.startReading();
    target.stopReading();
    await settled();
    frontend.timers.advance(GONE_LINGER_MS - 1);
    assertEquals(target.end, undefined);
    target.startReading();
    await target.ended;
    assertEquals(target.receivedBytes, 130_000);
  });
  await t.step("when it never closes", async () => {
    const frontend = new MemoryFrontend();
    const { caller, target } = await frontend.dialled();
    await caller.say(closeRequest(1));
    await frontend.timers.advance(2 * GONE_LINGER_MS);
    assertEquals(target.end?.kind, "reset");
    // What is left is the transport's; nothing of the call.
    assertEquals(frontend.timers.pendingCount, 0);
  });
});

Deno.test("a target's half-close is one empty DATA for a Go caller, whose way in stays open", async () => {
  const { caller, target } = await new MemoryFrontend().dialled();
  target.send("all there is");
  target.finish();
  caller.data(1, "x"); // ends the hold
  await settled();
  assertEquals(caller.received.slice(1), [
    'DATA 1 "all there is"',
    'DATA 1 ""',
  ]);
  await caller.data(1, "and the way in");
  assertEquals(target.text, "xand the way in");
  caller.say(closeRequest(1));
  assertEquals(await target.closed, { kind: "clean" });
  await settled();
  assertEquals(caller.received.slice(3), ["CLOSE_RSP 1", "status OK"]);
});

Deno.test("a target's half-close is DATA_END for our caller", async () => {
  const frontend = new MemoryFrontend();
  const caller = frontend.ourCaller();
  await caller.say(dialRequest);
  const target = frontend.connect();
  await target.finish();
  assertEquals(caller.received, ["DIAL_RSP 1 ok", "DATA_END 1"]);
  caller.data(1, "goes on");
  caller.call.halfClose();
  assertEquals(await target.closed, { kind: "clean" });
  await settled();
  assertEquals(target.text, "goes on");
  assertEquals(caller.received.slice(2), ["status OK"]);
});

Deno.test("no DATA_END stands in front of the status that says it too", async () => {
  const frontend = new MemoryFrontend();
  const caller = frontend.ourCaller();
  await caller.say(dialRequest);
  const target = frontend.connect();
  caller.call.halfClose();
  await target.ended;
  await target.finish();
  assertEquals(caller.received, ["DIAL_RSP 1 ok", "status OK"]);
});

Deno.test("a reset and a loss are reported with their reason", async (t) => {
  const words = { reset: "ABORTED", lost: "UNAVAILABLE" } as const;
  for (const kind of ["reset", "lost"] as const) {
    await t.step(`${kind}, to our caller`, async () => {
      const frontend = new MemoryFrontend();
      const caller = frontend.ourCaller();
      await caller.say(dialRequest);
      await frontend.connect().reset("ECONNRESET", kind);
      assertEquals(caller.received[1], `status ${words[kind]} ECONNRESET`);
    });
    await t.step(`${kind}, to a Go caller`, async () => {
      const { caller, target } = await new MemoryFrontend().dialled();
      await target.reset("ECONNRESET", kind);
      assertEquals(caller.received.slice(1), [
        "CLOSE_RSP 1 ECONNRESET",
        `status ${words[kind]} ECONNRESET`,
      ]);
    });
  }
});
