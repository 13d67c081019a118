import { assert, assertEquals } from "@std/assert";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import {
  closeRequest,
  dialRequest,
  MemoryFrontend,
  RANDOM,
} from "../../tests/support/memory/memory_frontend.ts";
import { StatusCode } from "../grpc/status.ts";
import { DialError } from "../peer/dial_error.ts";
import { DIAL_REQ_WAIT_MS } from "./proxy_service.ts";

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
