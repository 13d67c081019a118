import { assertEquals, assertMatch } from "@std/assert";
import { ConduitProbe } from "../../tests/support/memory/conduit_probe.ts";
import {
  certifiedCaller,
  socketCaller,
} from "../../tests/support/memory/fake_caller.ts";
import {
  FakeForwarder,
  fakePeers,
} from "../../tests/support/memory/fake_forwarder.ts";
import { FakeLink } from "../../tests/support/memory/fake_link.ts";
import { DialerScene } from "../../tests/support/memory/dialer_scene.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import { DialAuthorizer } from "../policy/dial_authorizer.ts";
import { Policy } from "../policy/policy.ts";
import type { CallerDial, DialerOptions } from "./dialer.ts";
import { SECOND_OPINION_MS } from "./ongoing_dial.ts";
import { STILL_MS } from "./registry.ts";

const TARGET = { protocol: "tcp", address: "edge-7:5432" };
const NOBODY = new DialError(
  "no-agent",
  "No agent available: no agent is connected (never seen)",
  { loss: "unprocessed" },
);

/** A server that knows of others. */
class Scene extends DialerScene {
  readonly forwarder: FakeForwarder;

  constructor(options: Partial<DialerOptions>, forwards = true) {
    const forwarder = new FakeForwarder();
    super({ ...(forwards ? { forwarder } : {}), ...options });
    this.forwarder = forwarder;
  }

  get isConnected(): boolean {
    return this.conduit !== undefined;
  }

  /** The servers that were asked, in order. */
  get servers(): string {
    return this.forwarder.dials.map(({ server }) => server).join(" ");
  }

  /** An agent's link; it owes no answer when it is asked for one. */
  alive(agentId: string): FakeLink {
    const link = new FakeLink(agentId);
    this.registry.add(link);
    return link;
  }

  wants(more: Partial<CallerDial> = {}, early = "") {
    return this.dial(early, undefined, { target: TARGET, ...more });
  }

  answer(index: number, error?: DialError): void {
    const { events } = this.forwarder.dials[index]!;
    if (error !== undefined) return events.onFailed(error);
    const [near, far] = MemoryConduit.pair();
    new ConduitProbe(far);
    events.onConnected(near);
  }
}

Deno.test("without forwarding, a caller is told which server has the agent", () => {
  const known = fakePeers(["s2"], { agentsAreKnown: true });
  const scene = new Scene({ peers: known }, false);
  scene.wants();
  assertEquals(scene.error?.reason, "no-agent");
  assertEquals(
    scene.error?.message,
    "No agent available: no agent serves host=edge-7 here; server s2 " +
      "(s2.example:8091) has it: call that one, or start servers with " +
      "--peer-forwarding",
  );
  assertEquals(scene.counted, ["no-agent direct"]);
  const guessed = new Scene({ peers: fakePeers(["s2", "s3"]) }, false);
  guessed.wants();
  assertMatch(
    guessed.error!.message,
    /; servers s2 \(.*\), s3 \(.*\) may have it: call one of them, or/,
  );
});

Deno.test("who may not know of nodes is not told which server has them", () => {
  const frontends = [{ commonName: "ops", nodes: ["*"], allow: ["tcp:*:*"] }];
  const authorizer = new DialAuthorizer({
    policy: { current: new Policy({ frontends }) },
    refused: () => {},
  });
  const scene = new Scene({ peers: fakePeers(["s2"]), authorizer }, false);
  scene.wants({ caller: certifiedCaller("ops") });
  assertEquals(
    scene.error?.message,
    "No agent available: no agent is connected (never seen)",
  );
});

Deno.test("a dial goes to a server that has the agent, and one that is linked here comes first", () => {
  const scene = new Scene({ peers: fakePeers(["s2", "s3"]) });
  scene.wants();
  assertEquals(scene.servers, "s2");
  scene.answer(0);
  assertEquals([scene.isConnected, scene.counted], [
    true,
    ["connected to_peer"],
  ]);
  const link = scene.alive("agent-a");
  scene.wants();
  assertEquals([scene.servers, link.dials.length], ["s2", 1]);
});

Deno.test("servers that have no such agent are asked in turn, with what the caller has sent", () => {
  const scene = new Scene({ peers: fakePeers(["s2", "s3"]) });
  scene.forwarder.takes = 4;
  const pending = scene.wants({}, "pay");
  assertEquals(pending.sendEarly?.(new TextEncoder().encode(" 10 €")), 4);
  scene.answer(0, NOBODY);
  assertEquals(scene.forwarder.dials[1]!.earlyData, "pay 10 ");
  scene.answer(1, NOBODY);
  assertEquals(scene.error?.reason, "no-agent");
  assertEquals(scene.counted, ["no-agent to_peer"]);
  assertEquals(scene.timers.pendingCount, 0);
});

Deno.test("datagrams that follow a dial wait for its answer: joined they would be one", () => {
  const scene = new Scene({ peers: fakePeers(["s2"]) });
  scene.forwarder.takes = 9;
  const target = { protocol: "udp", address: "edge-7:53" };
  const pending = scene.wants({ target });
  assertEquals(pending.sendEarly?.(new Uint8Array(3)), 0);
});

Deno.test("at most four servers are asked, and what a caller sent is sent to one that may have read it", () => {
  const many = new Scene({ peers: fakePeers(["s2", "s3", "s4", "s5", "s6"]) });
  many.wants();
  for (let index = 0; index < 4; index++) many.answer(index, NOBODY);
  assertEquals(many.servers, "s2 s3 s4 s5");
  assertEquals(many.error?.reason, "no-agent");
  const lost = new Scene({ peers: fakePeers(["s2", "s3"]) });
  lost.wants({}, "pay");
  lost.answer(0, new DialError("link-lost", "gone", { loss: "unanswered" }));
  assertEquals([lost.servers, lost.error?.reason], ["s2", "link-lost"]);
});

Deno.test("servers that are known to have the agent share the dials, others are asked in their order", () => {
  const known = fakePeers(["s2", "s3"], { agentsAreKnown: true });
  const scene = new Scene({ peers: known });
  for (let dials = 0; dials < 4; dials++) scene.wants();
  assertEquals(scene.servers, "s2 s3 s2 s3");
  const guessed = new Scene({ peers: fakePeers(["s2", "s3"]) });
  for (let dials = 0; dials < 3; dials++) guessed.wants();
  assertEquals(guessed.servers, "s2 s2 s2");
});

Deno.test("a dial that came from a server goes to no other", () => {
  const scene = new Scene({ peers: fakePeers(["s2"]) });
  const caller = { ...socketCaller(), forwardedBy: "s2" };
  scene.wants({ caller });
  assertEquals(scene.servers, "");
  assertEquals(scene.error?.reason, "no-agent");
  assertEquals(scene.counted, ["no-agent from_peer"]);
  // Neither instead of a link that is lost, nor beside one that is silent.
  const link = scene.alive("agent-a");
  scene.wants({ caller });
  scene.timers.advance(SECOND_OPINION_MS);
  link.dials[0]!.events.onFailed(
    new DialError("link-lost", "x", { loss: "unanswered" }),
  );
  assertEquals(scene.servers, "");
});

Deno.test("a server that stands still is not waited for alone", () => {
  const scene = new Scene({ peers: fakePeers(["s2", "s3", "s4"]) });
  scene.wants();
  scene.timers.advance(SECOND_OPINION_MS);
  assertEquals(scene.servers, "s2 s3");
  scene.answer(1, NOBODY);
  assertEquals(scene.servers, "s2 s3 s4");
  scene.answer(2);
  assertEquals(scene.isConnected, true);
  const { dials } = scene.forwarder;
  assertEquals(dials[0]!.cancelled, true);
  // Those whose agent stands still refuse it soon; the last one waits for it.
  assertEquals(dials.map(({ hasOthers }) => hasOthers), [true, true, false]);
});

Deno.test("an agent that drains or is silent here comes behind other servers", () => {
  const scene = new Scene({ peers: fakePeers(["s2"]) });
  const link = scene.alive("agent-a");
  link.isDraining = true;
  scene.wants();
  assertEquals([scene.servers, link.dials.length], ["s2", 0]);
  scene.answer(0, NOBODY);
  assertEquals([scene.servers, link.dials.length], ["s2", 1]);
});

Deno.test("an agent here that is slow is not dialed again through another server, one that is silent is", () => {
  const slow = new Scene({ peers: fakePeers(["s2"]) });
  const link = slow.alive("agent-a");
  slow.wants();
  slow.timers.advance(SECOND_OPINION_MS + STILL_MS);
  assertEquals([slow.servers, link.dials.length], ["", 1]);
  const silent = new Scene({ peers: fakePeers(["s2"]) });
  const frozen = silent.link("agent-a");
  silent.wants();
  silent.timers.advance(SECOND_OPINION_MS + STILL_MS);
  assertEquals([silent.servers, frozen.dials.length], ["s2", 1]);
});

Deno.test("an agent whose links are all silent is dialed through one server after the other", () => {
  const scene = new Scene({ peers: fakePeers(["s2", "s3"]) });
  const links = [scene.link("agent-a"), scene.link("agent-a")];
  for (const link of links) link.heard(scene.timers.now());
  scene.wants();
  scene.timers.advance(SECOND_OPINION_MS + STILL_MS);
  assertEquals(links.map(({ dials }) => dials.length), [1, 1]);
  assertEquals(scene.servers, "");
  // The second link gives no sign of life either, nor does what s2 asks.
  scene.timers.advance(2 * STILL_MS);
  assertEquals(scene.servers, "s2");
  scene.timers.advance(STILL_MS);
  assertEquals(scene.servers, "s2 s3");
  scene.answer(1);
  assertEquals(scene.isConnected, true);
  assertEquals(scene.timers.pendingCount, 0);
});

Deno.test("a dial for the only agent there is goes to no agent of several servers", () => {
  const two = new Scene({ peers: fakePeers(["s2", "s3"]) });
  two.wants({ oneAgent: true });
  assertEquals([two.servers, two.error?.reason], ["", "refused"]);
  const one = new Scene({ peers: fakePeers(["s2"]) });
  one.wants({ oneAgent: true });
  assertEquals(one.servers, "s2");
  const here = new Scene({ peers: fakePeers(["s2"]) });
  const link = here.alive("agent-a");
  link.isDraining = true;
  here.wants({ oneAgent: true });
  assertEquals([here.servers, link.dials.length], ["", 1]);
});

Deno.test("what a policy forbids is not forwarded", () => {
  const frontends = [
    { commonName: "ops", nodes: ["edge-*"], allow: ["tcp:*:80"] },
  ];
  const authorizer = new DialAuthorizer({
    policy: { current: new Policy({ frontends }) },
    refused: () => {},
  });
  const scene = new Scene({ peers: fakePeers(["s2"]), authorizer });
  const caller = certifiedCaller("ops");
  const target = { protocol: "tcp", address: "edge-7:80" };
  scene.wants({ caller, target, node: "edge-7" });
  assertEquals(scene.servers, "s2");
  scene.wants({ caller, target, node: "core-1" });
  scene.wants({ caller, node: "edge-7" });
  // Which node it will be is for the other server, so no rule about some fits.
  scene.wants({ caller, target });
  assertEquals(scene.servers, "s2");
  assertEquals(scene.error?.reason, "refused");
});
