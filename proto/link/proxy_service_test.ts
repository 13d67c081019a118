import { assert, assertEquals } from "@std/assert";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import {
  closeRequest,
  dialRequest,
  MemoryFrontend,
  RANDOM,
} from "../../tests/support/memory/memory_frontend.ts";
import { StatusCode } from "../grpc/status.ts";
import { DialError } from "../peer/dial_error.ts";
import { DIAL_REQ_WAIT_MS } from "./proxy_service.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import type { ScriptedCaller } from "../../tests/support/watch/packet_script.ts";
import { GONE_LINGER_BYTES_MAX, GONE_LINGER_MS } from "./packet_conduit.ts";

Deno.test("random is echoed to the bit and connectIDs count up", async () => {
  const frontend = new MemoryFrontend();
  const { caller } = await frontend.dialled();
  const other = await frontend.dialled();
  assertEquals(caller.packets, [
    { type: "DIAL_RSP", error: "", connectId: 1, random: RANDOM },
  ]);
  assertEquals(other.caller.received, ["DIAL_RSP 2 ok"]);
});

Deno.test("a failed dial reports its text, and its reason to those who read it", async () => {
  const frontend = new MemoryFrontend();
  const caller = frontend.goCaller();
  await caller.say(dialRequest);
  frontend.answers[0]!.failed(new DialError("no-agent", "No agent available"));
  await settled();
  assertEquals(caller.received, ["DIAL_RSP 0 No agent available", "status OK"]);
  assertEquals(caller.metadata.text("tunnel-dial-failure"), "no-agent");
});

Deno.test("DATA before a dial is answered (TestServerProxyNoDial)", async () => {
  const caller = new MemoryFrontend().goCaller();
  await caller.data(1, "too early");
  assertEquals(caller.received, [
    "CLOSE_RSP 1 backend not initialized",
    "status INVALID_ARGUMENT backend not initialized",
  ]);
});

Deno.test("CLOSE_REQ before a dial is answered and the call goes on", async () => {
  const frontend = new MemoryFrontend();
  const caller = frontend.goCaller();
  await caller.say(closeRequest(7), dialRequest);
  frontend.connect();
  await settled();
  assertEquals(caller.received, [
    "CLOSE_RSP 7 backend uninitialized",
    "DIAL_RSP 1 ok",
  ]);
});

Deno.test("DATA for another connection ends the call (TestServerProxyConnectionMismatch)", async () => {
  const { caller, target } = await new MemoryFrontend().dialled();
  await caller.data(99, "for whom");
  assertEquals(caller.received.slice(1), [
    "CLOSE_RSP 99 mismatched connection IDs",
    "status INVALID_ARGUMENT mismatched connection IDs",
  ]);
  assertEquals(target.end?.kind, "reset");
});

Deno.test("a second DIAL_REQ is refused and the first connection goes on", async () => {
  const frontend = new MemoryFrontend();
  const { caller, target } = await frontend.dialled();
  caller.say(dialRequest);
  await caller.data(1, "still here");
  assertEquals(frontend.answers.length, 1);
  assert(caller.received[1]!.startsWith("DIAL_RSP 0 Cannot dial twice"));
  assertEquals(target.text, "still here");
});

Deno.test("bytes that are no packet are INVALID_ARGUMENT", async () => {
  const frontend = new MemoryFrontend();
  const { caller, target } = await frontend.dialled();
  caller.call.sendMessage(Uint8Array.of(0x0a, 0xff, 0xff));
  await settled();
  assert(caller.received[1]!.startsWith("status INVALID_ARGUMENT Cannot"));
  assertEquals(target.end?.kind, "reset");
});

Deno.test("unknown packet types are ignored", async () => {
  const { caller, target } = await new MemoryFrontend().dialled();
  caller.say({ type: "UNKNOWN", code: 77 });
  await caller.data(1, "and on");
  assertEquals(target.text, "and on");
});

Deno.test("DIAL_CLS gives the pending dial up (TestProxyDial_RequestCancelled_GRPC)", async () => {
  const frontend = new MemoryFrontend();
  const caller = frontend.goCaller();
  await caller.say(dialRequest, { type: "DIAL_CLS", random: 5 });
  assertEquals(frontend.cancelled, 0);
  await caller.say({ type: "DIAL_CLS", random: RANDOM });
  assertEquals(frontend.cancelled, 1);
  assertEquals(caller.received, ["status OK"]);
});

Deno.test("a caller that goes during the dial cancels it", async () => {
  for (const leave of ["cancel", "halfClose"] as const) {
    const frontend = new MemoryFrontend();
    const caller = frontend.goCaller();
    await caller.say(dialRequest);
    caller.call[leave]();
    await settled();
    assertEquals(frontend.cancelled, 1, leave);
    const target = frontend.connect();
    await settled();
    assertEquals(target.end?.kind, "reset", "a late answer is put away");
  }
});

Deno.test("a call without a dial ends after a while", async () => {
  const frontend = new MemoryFrontend();
  const caller = frontend.goCaller();
  await settled();
  await frontend.timers.advance(DIAL_REQ_WAIT_MS);
  assertEquals(caller.received, [
    "status DEADLINE_EXCEEDED no DIAL_REQ came within 30 s",
  ]);
});

Deno.test("packets are counted by type", async () => {
  const frontend = new MemoryFrontend();
  const { caller } = await frontend.dialled();
  caller.data(1, "a");
  await caller.say(closeRequest(1));
  assertEquals(Object.fromEntries(frontend.observer.received), {
    DIAL_REQ: 1,
    DATA: 1,
    CLOSE_REQ: 1,
  });
  assertEquals(Object.fromEntries(frontend.observer.sent), {
    DIAL_RSP: 1,
    CLOSE_RSP: 1,
  });
});

Deno.test("calls that end badly are counted by status, once each", async () => {
  const frontend = new MemoryFrontend();
  const { failures } = frontend.observer;
  const closed = await frontend.dialled();
  await closed.caller.say(closeRequest(1));
  closed.caller.call.cancel();
  await settled();
  assertEquals(failures, []);
  const cancelled = await frontend.dialled();
  cancelled.caller.call.cancel();
  const reset = await frontend.dialled();
  await reset.target.reset("ECONNRESET");
  await frontend.dialled();
  await frontend.pair.break("EOF");
  assertEquals(failures, [
    StatusCode.CANCELLED,
    StatusCode.ABORTED,
    StatusCode.UNAVAILABLE,
  ]);
});

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
