import { assertEquals, assertMatch } from "@std/assert";
import { FROZEN_LOOK_MS, FROZEN_LOOKS } from "../../platform/time/race.ts";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { DialerScene as Scene } from "../../tests/support/memory/dialer_scene.ts";
import type { FakeLink } from "../../tests/support/memory/fake_link.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { SECOND_OPINION_MS } from "./ongoing_dial.ts";
import { STILL_MS } from "./registry.ts";

/** Two agents that take what is said early, and have not been heard lately. */
function doubtful(): { scene: Scene; first: FakeLink; second: FakeLink } {
  const scene = new Scene();
  const links = [scene.link("agent-a"), scene.link("agent-b")];
  for (const link of links) {
    link.isProven = false;
    link.takesEarly = true;
  }
  scene.dial("pay");
  const first = scene.firstAsked(links);
  return { scene, first, second: links.find((link) => link !== first)! };
}

const said = ({ dials }: FakeLink) =>
  dials.map(({ earlyData }) => new TextDecoder().decode(earlyData));

Deno.test("what a caller says first follows the dial once the agent has shown that it lives", () => {
  const { scene, first } = doubtful();
  assertEquals([first.asked, said(first)], [1, [""]]);
  scene.timers.advance(SECOND_OPINION_MS - 1);
  first.heard(scene.timers.now());
  assertEquals(said(first), ["pay"]);
  // It has heard it, so nobody else is asked.
  scene.timers.advance(1);
  assertEquals(scene.asked(), 1);
});

Deno.test("what a caller says later is kept, too, from an agent that may stand still by then", () => {
  const { scene, first } = doubtful();
  first.heard(scene.timers.now());
  const pending = scene.dial();
  const more = new TextEncoder().encode("more");
  const asked = scene.asked();
  assertEquals([pending.sendEarly!(more), asked], [0, 2]);
  for (const link of scene.registry.links) (link as FakeLink).isProven = true;
  const proven = scene.dial();
  assertEquals(proven.sendEarly!(more), more.length);
});

Deno.test("an agent that stands still, or is cut off, has heard nothing: another one serves", async () => {
  const { scene, first, second } = doubtful();
  scene.timers.advance(SECOND_OPINION_MS);
  assertEquals(said(second), [""]);
  // With two that are asked it waits for the answer.
  first.heard(scene.timers.now());
  const [near] = MemoryConduit.pair();
  second.dials[0]!.events.onConnected(near);
  await settled();
  assertEquals([said(first), said(second)], [[""], [""]]);
  assertEquals([first.dials[0]!.cancelled, scene.error], [true, undefined]);
  assertEquals(scene.taken, "", "it comes through the conduit");
});

Deno.test("an agent that stands still with what it was sent costs the dial seconds, unless it is the only one", () => {
  for (const agents of [["agent-a", "agent-b"], ["agent-a"]]) {
    const scene = new Scene();
    const links = agents.map((agent) => scene.link(agent));
    scene.dial("pay");
    scene.timers.advance(SECOND_OPINION_MS);
    // It answers, and its target is slow.
    const first = scene.firstAsked(links);
    first.heard(scene.timers.now());
    scene.timers.advance((FROZEN_LOOKS + 1) * FROZEN_LOOK_MS - 1);
    assertEquals([scene.asked(), scene.error], [1, undefined]);
    scene.timers.advance(1);
    const isOver = scene.error !== undefined;
    assertEquals([isOver, first.dials[0]!.cancelled], [
      agents.length > 1,
      agents.length > 1,
    ]);
    if (isOver) {
      assertMatch(scene.error!.message, /no sign of life; .* may have reached/);
    }
  }
});

Deno.test("a caller that knows other servers is sent to them by one whose only link stands still", () => {
  const scene = new Scene();
  const link = scene.link();
  link.isProven = false;
  scene.dial("pay", undefined, { hasOthers: true });
  assertEquals([link.asked, said(link)], [1, [""]]);
  scene.timers.advance(SECOND_OPINION_MS - 1);
  assertEquals(scene.error, undefined);
  scene.timers.advance(1);
  assertEquals([scene.error?.reason, scene.taken], ["no-agent", ""]);
  assertMatch(
    scene.error!.message,
    /^No agent available: agent agent-a .*sign/,
  );
  assertEquals(link.dials[0]!.cancelled, true);
  // The next one need not wait for that, and the last server waits itself.
  scene.dial("pay", undefined, { hasOthers: true });
  assertEquals([link.dials.length, scene.events.at(-1)], [
    1,
    "failed no-agent",
  ]);
  scene.dial("pay");
  assertEquals([link.dials.length, said(link).at(-1)], [2, "pay"]);
});

Deno.test("so is one whose agent has a second link that stands still, too", () => {
  const scene = new Scene();
  const links = [scene.link(), scene.link()];
  for (const link of links) link.isProven = false;
  scene.dial("pay", undefined, { hasOthers: true });
  scene.timers.advance(SECOND_OPINION_MS);
  assertEquals(links.map(({ dials }) => dials.length), [1, 1]);
  scene.timers.advance(STILL_MS);
  assertEquals([scene.error?.reason, scene.taken], ["no-agent", ""]);
  assertEquals(links.map(({ dials: [dial] }) => dial!.cancelled), [true, true]);
});

Deno.test("what was sent over the only link keeps a dial for seconds, then the caller may ask again", () => {
  const scene = new Scene();
  const link = scene.link();
  scene.dial("pay", undefined, { hasOthers: true });
  assertEquals(said(link), ["pay"]);
  scene.timers.advance(SECOND_OPINION_MS + FROZEN_LOOKS * FROZEN_LOOK_MS - 1);
  assertEquals(scene.error, undefined);
  scene.timers.advance(1);
  assertEquals(scene.error?.reason, "link-lost");
});

Deno.test("a link that answers late keeps the dial of a caller with other servers", () => {
  const scene = new Scene();
  const link = scene.link();
  link.isProven = false;
  link.takesEarly = true;
  scene.dial("pay", undefined, { hasOthers: true });
  scene.timers.advance(SECOND_OPINION_MS - 1);
  for (let look = 0; look < 10; look++) {
    link.heard(scene.timers.now());
    scene.timers.advance(FROZEN_LOOK_MS);
  }
  assertEquals([said(link), scene.error], [["pay"], undefined]);
});
