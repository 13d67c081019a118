import { LiveConduits } from "../../platform/conduits/live_conduits.ts";
import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import {
  certifiedCaller,
  socketCaller,
} from "../../tests/support/memory/fake_caller.ts";
import {
  DialerScene as Scene,
  TARGET,
} from "../../tests/support/memory/dialer_scene.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import { SECOND_OPINION_MS } from "./ongoing_dial.ts";
import { DialAuthorizer } from "../policy/dial_authorizer.ts";
import { Policy } from "../policy/policy.ts";
import { STILL_MS } from "./registry.ts";

Deno.test("a dial leads to a conduit, which is counted to its end", async () => {
  const scene = new Scene();
  const link = scene.link();
  scene.dial();
  assertEquals(link.dials[0]!.target, TARGET);
  scene.timers.advance(25);
  const [near, far] = MemoryConduit.pair();
  const target = new ConduitProbe(far);
  link.dials[0]!.events.onConnected(near);
  assertEquals(scene.events, [
    "started",
    "ended",
    "connected after 25",
    "answered",
  ]);
  const caller = new ConduitProbe(scene.conduit!);
  caller.send("query");
  target.send("some rows");
  await target.received(5);
  await caller.received(9);
  caller.finish();
  target.finish();
  await caller.closed;
  assertEquals(scene.events.slice(4), ["sent 5", "received 9", "over clean"]);
  assertEquals(scene.timers.pendingCount, 0);
});

Deno.test("a caller's id goes on, unless a connection here has it", () => {
  const conduits = new LiveConduits(new FakeTimers());
  const scene = new Scene({}, conduits);
  const { dials } = scene.link();
  const id = "f0e1d2c3b4a59687";
  scene.dial("", undefined, { id });
  const [conduit] = MemoryConduit.pair();
  const nobody = { received() {}, sent() {}, ended() {} };
  conduits.open(conduit, nobody, {}, { id, askedMs: 0 });
  scene.dial("", undefined, { id });
  scene.dial();
  const [first, second, third] = dials.map(({ id }) => id!);
  assertEquals(first, id);
  assertMatch(second!, /^[0-7][0-9a-f]{15}$/);
  assertMatch(third!, /^[0-7][0-9a-f]{15}$/);
  assertEquals(new Set([first, second, third]).size, 3);
});

Deno.test("a slip of who asks leaves nothing in the list of what is live", async () => {
  const conduits = new LiveConduits(new FakeTimers());
  const scene = new Scene({}, conduits);
  const { dials } = scene.link();
  const slip = () => {
    throw new Error("a slip");
  };
  const dial = (takeEarlyData: () => Uint8Array<ArrayBuffer>) =>
    scene.dialer.dial({
      ...{ target: TARGET, node: undefined, caller: socketCaller() },
      takeEarlyData,
    }, { connected: slip, failed() {} });
  assertThrows(() => dial(slip));
  assertEquals([conduits.dials.size, scene.timers.pendingCount], [0, 0]);
  dial(() => new Uint8Array(0));
  const [near, far] = MemoryConduit.pair();
  const target = new ConduitProbe(far);
  assertThrows(() => dials[0]!.events.onConnected(near));
  assertEquals((await target.closed).kind, "reset");
  assertEquals([conduits.size, conduits.dials.size], [0, 0]);
  assertEquals(scene.events.at(-1), "over reset");
  conduits.stop();
});

Deno.test("an agent that does not answer costs its deadline and no more", () => {
  const scene = new Scene();
  const link = scene.link();
  scene.dial();
  scene.timers.advance(9_999);
  assertEquals(scene.events, ["started"]);
  scene.timers.advance(1);
  assertEquals(scene.events.slice(1), [
    "ended",
    "counted deadline",
    "failed timeout",
  ]);
  assertMatch(scene.error!.message, /agent agent-a .* 10\.0\.0\.7:5432 within/);
  assertEquals(link.dials[0]!.cancelled, true);
});

Deno.test("without a deadline an agent may take for ever", () => {
  const scene = new Scene({ dialTimeoutMs: 0 });
  scene.link();
  scene.dial();
  scene.timers.advance(1e9);
  assertEquals(scene.timers.pendingCount, 0);
  assertEquals(scene.events, ["started"]);
});

Deno.test("a timeout that the agent answers with is an answer (TestProxyDial_AgentTimeout_GRPC)", () => {
  for (const reason of ["timeout", "endpoint", "cancelled"] as const) {
    const scene = new Scene();
    const link = scene.link();
    scene.dial();
    const error = new DialError(reason, "dial tcp: i/o timeout");
    link.dials[0]!.events.onFailed(error);
    assertEquals(scene.events.slice(1, 3), ["ended", "counted answered"]);
    // Whose answer it is, but of what the caller itself has ended.
    const whose = reason === "cancelled" ? "" : " (agent agent-a)";
    assertEquals(scene.error?.reason, reason);
    assertEquals(scene.error?.message, `dial tcp: i/o timeout${whose}`);
    assertEquals(scene.timers.pendingCount, 0);
  }
});

Deno.test("an agent that goes fails its dials at once", () => {
  for (const reason of ["link-lost", "dial-closed"] as const) {
    const scene = new Scene();
    const link = scene.link();
    scene.dial();
    link.dials[0]!.events.onFailed(new DialError(reason, "gone"));
    assertEquals(scene.events.slice(1), [
      "ended",
      `counted ${reason}`,
      `failed ${reason}`,
    ]);
    assertEquals(scene.timers.pendingCount, 0);
  }
});

Deno.test("a link that fails a dial before it returns is reported once", () => {
  const scene = new Scene();
  const link = scene.link();
  link.dial = (_target, events) => {
    events.onFailed(new DialError("link-lost", "the agent's link is over"));
    return { cancel: () => {} };
  };
  scene.dial().cancel();
  assertEquals(scene.events, [
    "started",
    "ended",
    "counted link-lost",
    "failed link-lost",
  ]);
});

Deno.test("after a cancel the caller receives nothing more, and the agent receives it", () => {
  const scene = new Scene();
  const link = scene.link();
  const pending = scene.dial();
  pending.cancel();
  pending.cancel();
  assertEquals(scene.events, ["started", "ended", "counted cancelled"]);
  assertEquals(link.dials[0]!.cancelled, true);
  assertEquals(scene.timers.pendingCount, 0);
});

Deno.test("a success that comes too late is reset", async () => {
  const scene = new Scene();
  const link = scene.link();
  scene.dial().cancel();
  const [near, far] = MemoryConduit.pair();
  const target = new ConduitProbe(far);
  link.dials[0]!.events.onConnected(near);
  await settled();
  assertEquals(target.end?.kind, "reset");
  assertEquals(scene.conduit, undefined);
  link.dials[0]!.events.onFailed(new DialError("endpoint", "late, too"));
  assertEquals(scene.error, undefined);
});

Deno.test("what is sent before the answer goes to a link that takes it", () => {
  const scene = new Scene();
  const link = scene.link();
  const more = new TextEncoder().encode("more");
  assertEquals(scene.dial().sendEarly!(more), 0, "this one takes none");
  const dial = link.dial.bind(link);
  link.dial = (...order) => ({ ...dial(...order), sendEarly: () => 3 });
  const pending = scene.dial();
  assertEquals(pending.sendEarly!(more), 3);
  pending.cancel();
  assertEquals(pending.sendEarly!(more), 0, "it was given up");
});

Deno.test("early data counts as sent once the dial has succeeded", () => {
  const scene = new Scene();
  const link = scene.link();
  const dial = link.dial.bind(link);
  link.dial = (...args) => ({
    ...dial(...args),
    sendEarly: (bytes) => Math.min(bytes.length, 2),
  });
  const pending = scene.dial("hello");
  assertEquals(pending.sendEarly?.(new Uint8Array(5)), 2);
  assertEquals(scene.events, ["started"]);
  const [near] = MemoryConduit.pair();
  link.dials[0]!.events.onConnected(near);
  assertEquals(scene.events.slice(1), [
    "ended",
    "connected after 0",
    "sent 7",
    "answered",
  ]);
});

Deno.test("early data stays with a caller that no agent serves, or whose server ends", () => {
  for (const isEnding of [false, true]) {
    const scene = new Scene();
    if (isEnding) scene.link();
    scene.dialer.isEnding = isEnding;
    scene.dial("words");
    assertEquals(scene.taken, "");
    // Callers ask the next server after these words, with what they had to say.
    assertMatch(scene.error!.message, /^No agent available: /);
  }
});

Deno.test("a dial whose link went before it answered goes to another agent", async () => {
  for (const loss of ["unprocessed", "unanswered"] as const) {
    const scene = new Scene();
    const first = scene.link("agent-a");
    scene.dial();
    scene.registry.remove(first);
    const second = scene.link("agent-b");
    first.dials[0]!.events.onFailed(
      new DialError("link-lost", "gone", { loss }),
    );
    assertEquals(second.dials.length, 1);
    const [near, far] = MemoryConduit.pair();
    new ConduitProbe(far);
    second.dials[0]!.events.onConnected(near);
    await settled();
    assertEquals(scene.events.filter((line) => line.startsWith("failed")), []);
    assertEquals(scene.events.filter((line) => line === "ended").length, 1);
  }
});

Deno.test("what a caller has sent goes to no second agent, unless the first received nothing", () => {
  for (const loss of ["unprocessed", "unanswered"] as const) {
    const scene = new Scene();
    const first = scene.link("agent-a");
    scene.dial("pay");
    scene.registry.remove(first);
    const second = scene.link("agent-b");
    first.dials[0]!.events.onFailed(
      new DialError("link-lost", "gone", { loss }),
    );
    assertEquals(second.dials.length, loss === "unprocessed" ? 1 : 0);
    if (loss === "unprocessed") {
      assertEquals(second.dials[0]!.earlyData, new TextEncoder().encode("pay"));
    } else {
      assertMatch(scene.error!.message, /link to agent agent-a .* lost/);
      assertEquals(scene.events.at(-2), "counted link-lost after 3 bytes");
    }
  }
});

Deno.test("an answer is an answer, and a link is asked once", () => {
  const scene = new Scene();
  const first = scene.link("agent-a");
  scene.dial();
  scene.link("agent-b");
  first.dials[0]!.events.onFailed(new DialError("endpoint", "refused"));
  assertEquals(scene.error?.reason, "endpoint");
  const lone = new Scene();
  const link = lone.link();
  lone.dial();
  link.dials[0]!.events.onFailed(
    new DialError("link-lost", "x", { loss: "unanswered" }),
  );
  assertEquals([lone.error?.reason, link.dials.length], ["link-lost", 1]);
});

Deno.test("an agent that is out of descriptors says nothing of the target: another agent is asked", async () => {
  const message = "dial tcp 10.0.0.7:5432: socket: too many open files";
  const busy = () => new DialError("endpoint", message);
  const scene = new Scene();
  const links = [scene.link("agent-a"), scene.link("agent-b")];
  scene.link("agent-a");
  scene.dial("pay");
  const first = scene.firstAsked(links);
  first.dials[0]!.events.onFailed(busy());
  const [other] = links.filter((link) => link !== first);
  assertEquals(scene.asked(), 2);
  assertEquals(other!.dials[0]!.earlyData, new TextEncoder().encode("pay"));
  other!.dials[0]!.events.onConnected(target());
  await settled();
  assertEquals(scene.error, undefined);
  // Where there is no other, its words are the answer.
  const lone = new Scene();
  const link = lone.link("agent-a");
  lone.dial();
  lone.link("agent-a");
  link.dials[0]!.events.onFailed(busy());
  assertEquals([lone.error?.message.includes(message), lone.asked()], [
    true,
    1,
  ]);
});

/** A conduit for a dial that is answered. */
function target(): MemoryConduit {
  const [near, far] = MemoryConduit.pair();
  new ConduitProbe(far);
  return near;
}

Deno.test("an agent that does not answer soon is not waited for alone", async () => {
  const scene = new Scene();
  const [frozen, other] = [scene.link("agent-a"), scene.link("agent-b")];
  scene.dial();
  const [asked, rival] = frozen.dials.length === 1
    ? [frozen, other]
    : [other, frozen];
  scene.timers.advance(SECOND_OPINION_MS - 1);
  assertEquals(rival.dials.length, 0);
  scene.timers.advance(1);
  assertEquals(rival.dials[0]!.target, TARGET);
  rival.dials[0]!.events.onConnected(target());
  await settled();
  assertEquals(asked.dials[0]!.cancelled, true);
  assertEquals(scene.error, undefined);
  assertEquals(scene.timers.pendingCount, 0);
  // Late, and nobody's: it is hung up on.
  const late = target();
  asked.dials[0]!.events.onConnected(late);
  assertEquals(scene.events.filter((line) => line === "answered").length, 1);
});

Deno.test("what the second agent cannot reach, the first may", async () => {
  const scene = new Scene();
  const links = [scene.link("agent-a"), scene.link("agent-b")];
  scene.dial();
  scene.timers.advance(SECOND_OPINION_MS);
  const first = scene.firstAsked(links);
  const second = links.find((link) => link !== first);
  second!.dials[0]!.events.onFailed(new DialError("endpoint", "no route"));
  assertEquals(scene.error, undefined);
  first!.dials[0]!.events.onConnected(target());
  await settled();
  assertEquals(scene.error, undefined);
});

Deno.test("with two that are asked, what the first says counts, and its loss does not", async () => {
  const answered = new Scene();
  const lost = new Scene();
  for (const scene of [answered, lost]) {
    const links = [scene.link("agent-a"), scene.link("agent-b")];
    scene.dial();
    scene.timers.advance(SECOND_OPINION_MS);
    // The first that was asked is asked first.
    const first = scene.firstAsked(links);
    const second = links.find((link) => link !== first)!;
    if (scene === answered) {
      const refused = new DialError("endpoint", "connection refused");
      first.dials[0]!.events.onFailed(refused);
      assertEquals(scene.error?.reason, "endpoint");
      assertEquals(second.dials[0]!.cancelled, true);
    } else {
      scene.registry.remove(first);
      const gone = new DialError("link-lost", "gone", { loss: "unanswered" });
      first.dials[0]!.events.onFailed(gone);
      assertEquals(scene.error, undefined);
      second.dials[0]!.events.onConnected(target());
      await settled();
    }
    assertEquals(scene.timers.pendingCount, 0);
  }
  assertEquals(lost.error, undefined);
});

Deno.test("nobody else is asked where words went along, the agent is named alone, or it is no other", () => {
  const words = new Scene();
  words.link("agent-a");
  words.link("agent-b");
  words.dial("pay");
  words.timers.advance(SECOND_OPINION_MS);
  assertEquals(words.asked(), 1);
  const named = new Scene();
  named.link("agent-a");
  named.link("agent-b");
  named.dial("", "id=agent-a");
  named.timers.advance(SECOND_OPINION_MS);
  assertEquals(named.asked(), 1);
  const same = new Scene();
  for (const link of [same.link("agent-a"), same.link("agent-a")]) {
    link.heard(same.timers.now());
  }
  same.dial();
  same.timers.advance(SECOND_OPINION_MS);
  assertEquals(same.asked(), 1);
});

Deno.test("a link that gives no sign of life is not waited for alone, where its agent has another", async () => {
  const scene = new Scene();
  const links = [scene.link("agent-a"), scene.link("agent-a")];
  for (const link of links) link.heard(scene.timers.now());
  scene.dial();
  scene.timers.advance(SECOND_OPINION_MS);
  const first = scene.firstAsked(links);
  const second = links.find((link) => link !== first)!;
  scene.timers.advance(STILL_MS - 1);
  assertEquals(scene.asked(), 1);
  scene.timers.advance(1);
  second.dials[0]!.events.onConnected(target());
  await settled();
  assertEquals([first.dials[0]!.cancelled, scene.error], [true, undefined]);
  assertEquals(scene.timers.pendingCount, 0);
});

Deno.test("an agent that stands still costs the dials that wait for it, and none of those that follow", () => {
  const scene = new Scene();
  const links = [scene.link("agent-a"), scene.link("agent-b")];
  scene.dial("words");
  const frozen = scene.firstAsked(links);
  const other = links.find((link) => link !== frozen)!;
  scene.timers.advance(SECOND_OPINION_MS + STILL_MS);
  assertEquals(frozen.asked, 1);
  for (let count = 0; count < 20; count++) scene.dial("words");
  assertEquals([frozen.dials.length, other.dials.length], [1, 20]);
  // Nobody else is left, so it is asked again.
  scene.registry.remove(other);
  scene.dial("words");
  assertEquals(frozen.dials.length, 2);
  // It lives.
  scene.registry.add(other);
  frozen.heard(scene.timers.now());
  other.load = 5;
  scene.dial("words");
  assertEquals(frozen.dials.length, 3);
});

Deno.test("what is another machine on each node is refused, also for callers that may not know their names", () => {
  const frontends = [{ commonName: "ops", nodes: ["*"], allow: ["tcp:*:*"] }];
  const authorizer = new DialAuthorizer({
    policy: { current: new Policy({ frontends }) },
    refused: () => {},
  });
  const order = { caller: certifiedCaller("ops"), oneAgent: true };
  const scene = new Scene({ authorizer });
  scene.link("agent-a");
  scene.dial("", undefined, order);
  assertEquals([scene.asked(), scene.error], [1, undefined]);
  scene.link("a name with spaces");
  scene.dial("", undefined, order);
  assertEquals(scene.asked(), 1);
  assertEquals(
    scene.error?.message,
    "Cannot dial 10.0.0.7:5432: it is another machine on each node; say " +
      "which with --node",
  );
});

Deno.test("an agent that nobody asked for is not written down as refused", () => {
  let refused = 0;
  const frontends = [
    { commonName: "ops", nodes: ["agent-a"], allow: ["tcp:*:*"] },
  ];
  const authorizer = new DialAuthorizer({
    policy: { current: new Policy({ frontends }) },
    refused: () => refused++,
  });
  const scene = new Scene({ authorizer });
  scene.link("agent-a");
  scene.link("agent-b");
  scene.dial("", undefined, { caller: certifiedCaller("ops") });
  scene.timers.advance(SECOND_OPINION_MS);
  assertEquals([scene.asked(), refused], [1, 0]);
});
