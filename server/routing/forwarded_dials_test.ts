import { DialReports } from "../../platform/conduits/dial_reports.ts";
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
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import { DialAuthorizer } from "../policy/dial_authorizer.ts";
import { Policy } from "../policy/policy.ts";
import { type CallerDial, Dialer, type DialerOptions } from "./dialer.ts";
import { SECOND_OPINION_MS } from "./ongoing_dial.ts";
import { Registry, STILL_MS } from "./registry.ts";

const TARGET = { protocol: "tcp", address: "edge-7:5432" };
const NOBODY = new DialError(
  "no-agent",
  "No agent available: no agent is connected (never seen)",
  "unprocessed",
);

/** A server that knows of others. */
class Scene {
  readonly timers = new FakeTimers();
  readonly registry = new Registry({
    strategies: ["default"],
    clock: this.timers,
    random: () => 0,
  });
  readonly forwarder = new FakeForwarder();
  readonly counted: string[] = [];
  readonly dialer: Dialer;
  isConnected = false;
  error: DialError | undefined;

  constructor(options: Partial<DialerOptions>, forwards = true) {
    this.dialer = new Dialer({
      registry: this.registry,
      timers: this.timers,
      dialTimeoutMs: 10_000,
      reports: new DialReports(),
      observer: {
        dialStarted: () => {},
        dialEnded: () => {},
        dialFailed: (cause, path) => this.counted.push(`${cause} ${path}`),
        connected: (_tookMs, path) => {
          this.counted.push(`connected ${path}`);
          return { received() {}, sent() {}, ended() {} };
        },
      },
      ...(forwards ? { forwarder: this.forwarder } : {}),
      ...options,
    });
  }

  /** The servers that were asked, in order. */
  get asked(): string {
    return this.forwarder.dials.map(({ server }) => server).join(" ");
  }

  /** @param clock So that it owes an answer once it is asked for one. */
  link(agentId: string, clock?: FakeTimers): FakeLink {
    const link = new FakeLink(agentId, {}, clock);
    this.registry.add(link);
    return link;
  }

  dial(more: Partial<CallerDial> = {}, early = "") {
    return this.dialer.dial({
      target: TARGET,
      node: undefined,
      caller: socketCaller(),
      ...more,
      takeEarlyData: () => new TextEncoder().encode(early),
    }, {
      connected: () => this.isConnected = true,
      failed: (error) => this.error = error,
    });
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
  scene.dial();
  assertEquals(scene.error?.reason, "no-agent");
  assertEquals(
    scene.error?.message,
    "No agent available: no agent serves host=edge-7 here; server s2 " +
      "(s2.example:8091) has it: call that one, or start servers with " +
      "--peer-forwarding",
  );
  assertEquals(scene.counted, ["no-agent direct"]);
  const guessed = new Scene({ peers: fakePeers(["s2", "s3"]) }, false);
  guessed.dial();
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
  scene.dial({ caller: certifiedCaller("ops") });
  assertEquals(
    scene.error?.message,
    "No agent available: no agent is connected (never seen)",
  );
});

Deno.test("a dial goes to a server that has the agent, and one that is linked here comes first", () => {
  const scene = new Scene({ peers: fakePeers(["s2", "s3"]) });
  scene.dial();
  assertEquals(scene.asked, "s2");
  scene.answer(0);
  assertEquals([scene.isConnected, scene.counted], [
    true,
    ["connected to_peer"],
  ]);
  const link = scene.link("agent-a");
  scene.dial();
  assertEquals([scene.asked, link.dials.length], ["s2", 1]);
});

Deno.test("servers that have no such agent are asked in turn, with what the caller has sent", () => {
  const scene = new Scene({ peers: fakePeers(["s2", "s3"]) });
  scene.forwarder.takes = 4;
  const pending = scene.dial({}, "pay");
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
  const pending = scene.dial({ target });
  assertEquals(pending.sendEarly?.(new Uint8Array(3)), 0);
});

Deno.test("at most four servers are asked, and what a caller sent is sent to one that may have read it", () => {
  const many = new Scene({ peers: fakePeers(["s2", "s3", "s4", "s5", "s6"]) });
  many.dial();
  for (let index = 0; index < 4; index++) many.answer(index, NOBODY);
  assertEquals(many.asked, "s2 s3 s4 s5");
  assertEquals(many.error?.reason, "no-agent");
  const lost = new Scene({ peers: fakePeers(["s2", "s3"]) });
  lost.dial({}, "pay");
  lost.answer(0, new DialError("link-lost", "gone", "unanswered"));
  assertEquals([lost.asked, lost.error?.reason], ["s2", "link-lost"]);
});

Deno.test("servers that are known to have the agent share the dials, others are asked in their order", () => {
  const known = fakePeers(["s2", "s3"], { agentsAreKnown: true });
  const scene = new Scene({ peers: known });
  for (let dials = 0; dials < 4; dials++) scene.dial();
  assertEquals(scene.asked, "s2 s3 s2 s3");
  const guessed = new Scene({ peers: fakePeers(["s2", "s3"]) });
  for (let dials = 0; dials < 3; dials++) guessed.dial();
  assertEquals(guessed.asked, "s2 s2 s2");
});

Deno.test("a dial that came from a server goes to no other", () => {
  const scene = new Scene({ peers: fakePeers(["s2"]) });
  const caller = { ...socketCaller(), forwardedBy: "s2" };
  scene.dial({ caller });
  assertEquals(scene.asked, "");
  assertEquals(scene.error?.reason, "no-agent");
  assertEquals(scene.counted, ["no-agent from_peer"]);
  // Neither instead of a link that is lost, nor beside one that is silent.
  const link = scene.link("agent-a");
  scene.dial({ caller });
  scene.timers.advance(SECOND_OPINION_MS);
  link.dials[0]!.events.onFailed(new DialError("link-lost", "x", "unanswered"));
  assertEquals(scene.asked, "");
});

Deno.test("a server that stands still is not waited for alone", () => {
  const scene = new Scene({ peers: fakePeers(["s2", "s3", "s4"]) });
  scene.dial();
  scene.timers.advance(SECOND_OPINION_MS);
  assertEquals(scene.asked, "s2 s3");
  scene.answer(1, NOBODY);
  assertEquals(scene.asked, "s2 s3 s4");
  scene.answer(2);
  assertEquals(scene.isConnected, true);
  assertEquals(scene.forwarder.dials[0]!.cancelled, true);
});

Deno.test("an agent that drains or is silent here comes behind other servers", () => {
  const scene = new Scene({ peers: fakePeers(["s2"]) });
  const link = scene.link("agent-a");
  link.isDraining = true;
  scene.dial();
  assertEquals([scene.asked, link.dials.length], ["s2", 0]);
  scene.answer(0, NOBODY);
  assertEquals([scene.asked, link.dials.length], ["s2", 1]);
});

Deno.test("an agent here that is slow is not dialed again through another server, one that is silent is", () => {
  const slow = new Scene({ peers: fakePeers(["s2"]) });
  const link = slow.link("agent-a");
  slow.dial();
  slow.timers.advance(SECOND_OPINION_MS + STILL_MS);
  assertEquals([slow.asked, link.dials.length], ["", 1]);
  const silent = new Scene({ peers: fakePeers(["s2"]) });
  const frozen = silent.link("agent-a", silent.timers);
  silent.dial();
  silent.timers.advance(SECOND_OPINION_MS + STILL_MS);
  assertEquals([silent.asked, frozen.dials.length], ["s2", 1]);
});

Deno.test("a dial for the only agent there is goes to no agent of several servers", () => {
  const two = new Scene({ peers: fakePeers(["s2", "s3"]) });
  two.dial({ oneAgent: true });
  assertEquals([two.asked, two.error?.reason], ["", "refused"]);
  const one = new Scene({ peers: fakePeers(["s2"]) });
  one.dial({ oneAgent: true });
  assertEquals(one.asked, "s2");
  const here = new Scene({ peers: fakePeers(["s2"]) });
  const link = here.link("agent-a");
  link.isDraining = true;
  here.dial({ oneAgent: true });
  assertEquals([here.asked, link.dials.length], ["", 1]);
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
  scene.dial({ caller, target, node: "edge-7" });
  assertEquals(scene.asked, "s2");
  scene.dial({ caller, target, node: "core-1" });
  scene.dial({ caller, node: "edge-7" });
  // Which node it will be is for the other server, so no rule about some fits.
  scene.dial({ caller, target });
  assertEquals(scene.asked, "s2");
  assertEquals(scene.error?.reason, "refused");
});
