import { assert, assertEquals } from "@std/assert";
import { CountingObserver } from "../../tests/support/rigs/carrier_rig.ts";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import { ConnectionPair } from "../../tests/support/memory/connection_pair.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import {
  closeRequest,
  RANDOM,
} from "../../tests/support/memory/memory_frontend.ts";
import { ScriptedCallee } from "../../tests/support/watch/packet_script.ts";
import { StatusCode } from "../grpc/status.ts";
import type { Int64, Packet } from "../packets/packet.ts";
import type { DialAnswer } from "./dial_handler.ts";
import { DialError } from "../peer/dial_error.ts";
import { DIALS_MAX, HEAD_WAIT_MS, PacketsAgentLink } from "./packets_agent.ts";
import { CONTROL_KEPT_BYTES_MAX } from "./packets_mux.ts";
import { FIRST_HOLD_MS } from "./first_hold.ts";
import { CONNECT_PATH } from "./capabilities.ts";

const dialRequest = (random: Int64): Packet => ({
  type: "DIAL_REQ",
  protocol: "tcp",
  address: "10.0.0.1:443",
  random,
});

/** Our agent, and a Konnectivity server that says what it is told. */
class Agent {
  readonly timers = new FakeTimers();
  readonly observer = new CountingObserver();
  readonly server = new ScriptedCallee();
  readonly answers: DialAnswer[] = [];
  readonly link: PacketsAgentLink;
  readonly pair: ConnectionPair;
  info: [string, number, boolean] | undefined;
  closed: string | undefined;
  cancelled = 0;

  constructor() {
    this.pair = new ConnectionPair({
      clock: this.timers,
      methods: { [CONNECT_PATH]: this.server.serve },
    });
    this.link = new PacketsAgentLink(this.pair.client, {
      agentId: "agent-x",
      identifiers: "host=node1&default-route=true",
      token: "t0ken",
      authority: "server",
      timers: this.timers,
      observer: this.observer,
      onDial: (_target, answer) => {
        this.answers.push(answer);
        return { cancel: () => void this.cancelled++ };
      },
      onServerInfo: (id, count, isOurs) =>
        void (this.info = [id, count, isOurs]),
      onClosed: (error) => void (this.closed = error.message),
    });
  }

  static async linked(): Promise<Agent> {
    const agent = new Agent();
    await settled();
    await agent.server.answer({ serverid: "s-1", servercount: "3" });
    return agent;
  }

  connect(): ConduitProbe {
    const [near, far] = MemoryConduit.pair();
    const target = new ConduitProbe(far);
    this.answers.at(-1)!.connected(near);
    return target;
  }

  /** A linked agent with connection 1. */
  static async connected(): Promise<{ agent: Agent; target: ConduitProbe }> {
    const agent = await Agent.linked();
    await agent.server.say(dialRequest(RANDOM));
    const target = agent.connect();
    await settled();
    return { agent, target };
  }
}

Deno.test("an agent says who it is and receives who the server is", async () => {
  const agent = await Agent.linked();
  const { metadata } = agent.server;
  assertEquals(metadata.texts("agentid"), ["agent-x"]);
  assertEquals(metadata.texts("agentidentifiers"), [
    "host=node1&default-route=true",
  ]);
  assertEquals(metadata.texts("authorization"), ["Bearer t0ken"]);
  assertEquals(agent.info, ["s-1", 3, false]);
});

Deno.test("a server that does not say who it is gets no agent", async () => {
  for (
    const metadata of [{}, { serverid: "s" }, {
      serverid: "s",
      servercount: "x",
    }]
  ) {
    const agent = new Agent();
    await settled();
    await agent.server.answer(metadata);
    assert(agent.closed?.startsWith("expected one server"));
    assertEquals(agent.server.received, ["cancel"]);
  }
});

Deno.test("a silent server is given up", async () => {
  const agent = new Agent();
  await settled();
  agent.timers.advance(HEAD_WAIT_MS);
  assertEquals(agent.closed, "the server did not answer in 10 s");
});

Deno.test("a refusing status is reported word for word", async () => {
  const agent = new Agent();
  await settled();
  await agent.server.finish(
    StatusCode.UNKNOWN,
    "token not authenticated: 50% off",
  );
  assertEquals(agent.closed, "token not authenticated: 50% off");
  assertEquals(agent.observer.failures, [StatusCode.UNKNOWN]);
});

Deno.test("dials are answered with their random (TestServeData_HTTP)", async () => {
  const { agent, target } = await Agent.connected();
  await agent.server.data(1, "GET /");
  target.send("200 OK");
  await target.finish();
  assertEquals(target.text, "GET /");
  assertEquals(agent.server.received, [
    "DIAL_RSP 1 ok",
    'DATA 1 "200 OK"',
    "CLOSE_RSP 1",
  ]);
  assertEquals(agent.server.packets[0], {
    type: "DIAL_RSP",
    error: "",
    connectId: 1,
    random: RANDOM,
  });
  assertEquals(await target.closed, { kind: "clean" });
  assertEquals(agent.link.load, 0);
});

Deno.test("a dial that failed is answered with the text", async () => {
  const agent = await Agent.linked();
  await agent.server.say(dialRequest(5));
  agent.answers[0]!.failed(new DialError("endpoint", "connection refused"));
  await settled();
  assertEquals(agent.server.received, ["DIAL_RSP 0 connection refused"]);
});

Deno.test("a target's first bytes wait a moment, or for the caller's", async () => {
  const quiet = await Agent.connected();
  quiet.target.send("banner");
  await quiet.target.finish();
  await quiet.agent.timers.advance(FIRST_HOLD_MS - 1);
  assertEquals(quiet.agent.server.received, ["DIAL_RSP 1 ok"]);
  await quiet.agent.timers.advance(1);
  assertEquals(quiet.agent.server.received.slice(1), [
    'DATA 1 "banner"',
    "CLOSE_RSP 1",
  ]);

  const asked = await Agent.connected();
  await asked.target.send("banner");
  await asked.agent.server.data(1, "hello");
  assertEquals(asked.agent.server.received.at(-1), 'DATA 1 "banner"');
});

Deno.test("CLOSE_REQ is answered once (TestClose_Client)", async () => {
  const { agent, target } = await Agent.connected();
  await agent.server.say(closeRequest(1));
  assertEquals(target.hasEnded, true);
  await agent.server.say(closeRequest(1));
  assertEquals(agent.server.received.slice(1), [
    "CLOSE_RSP 1",
    "CLOSE_RSP 1 Unknown connectID",
  ]);
});

Deno.test("CLOSE_REQ waits until the target has what came before", async () => {
  const { agent, target } = await Agent.connected();
  target.stopReading();
  agent.server.data(1, new Uint8Array(100_000));
  await agent.server.say(closeRequest(1));
  assertEquals(agent.server.received.length, 1);
  assertEquals(target.hasEnded, false);
  target.startReading();
  await target.ended;
  await settled();
  assertEquals(target.receivedBytes, 100_000);
  assertEquals(agent.server.received.slice(1), ["CLOSE_RSP 1"]);
});

Deno.test("DATA for an unknown connection is answered once (TestConnectionMismatch)", async () => {
  const agent = await Agent.linked();
  agent.server.data(8, "a");
  await agent.server.data(8, "b");
  assertEquals(agent.server.received, ["CLOSE_RSP 8 unrecognized connectID"]);
});

Deno.test("a reset of the target carries its text to the server", async () => {
  const { agent, target } = await Agent.connected();
  await target.reset("ECONNRESET");
  assertEquals(agent.server.received.slice(1), ["CLOSE_RSP 1 ECONNRESET"]);
});

Deno.test("DIAL_CLS gives the dial up", async () => {
  const agent = await Agent.linked();
  await agent.server.say(dialRequest(5), { type: "DIAL_CLS", random: 5 });
  assertEquals(agent.cancelled, 1);
  assertEquals(agent.link.load, 0);
  const late = agent.connect();
  await settled();
  assertEquals(late.end?.kind, "reset");
  assertEquals(agent.server.received, []);
});

Deno.test("an answer to a dial given up is not taken for a later one", async () => {
  const agent = await Agent.linked();
  const again = dialRequest(5);
  await agent.server.say(again, { type: "DIAL_CLS", random: 5 }, again);
  const [first, second] = agent.answers;
  first!.failed(new DialError("endpoint", "too late"));
  second!.failed(new DialError("endpoint", "refused"));
  await settled();
  assertEquals(agent.server.received, ["DIAL_RSP 0 refused"]);
});

Deno.test("DRAIN is sent once, while data flows (TestDrain)", async () => {
  const { agent, target } = await Agent.connected();
  agent.link.drain();
  agent.link.drain();
  target.send("still served");
  await agent.timers.advance(FIRST_HOLD_MS);
  assertEquals(agent.server.received.slice(1), [
    "DRAIN",
    'DATA 1 "still served"',
  ]);
});

Deno.test("a server that goes takes its connections and dials along", async () => {
  const { agent, target } = await Agent.connected();
  await agent.server.say(dialRequest(6));
  await agent.pair.break("server killed");
  assertEquals(target.end?.kind, "lost");
  assertEquals(agent.cancelled, 1);
  assert(agent.closed?.includes("server killed"));
  assertEquals(agent.timers.pendingCount, 0);
});

Deno.test("a server cannot have more dials under way than the limit", async () => {
  const agent = await Agent.linked();
  for (let random = 1; random <= DIALS_MAX; random++) {
    agent.server.say(dialRequest(random));
  }
  await agent.server.say(dialRequest(DIALS_MAX + 1), dialRequest(1));
  assertEquals(agent.link.load, DIALS_MAX);
  assertEquals(agent.server.received, [
    `DIAL_RSP 0 ${DIALS_MAX} dials are under way`,
    "DIAL_RSP 0 a dial with this id is under way",
  ]);
});

Deno.test("a server that asks and never reads is cut off", async () => {
  const agent = await Agent.linked();
  agent.server.isReading = false;
  // Each is answered with some 30 bytes that the server never credits.
  const questions = CONTROL_KEPT_BYTES_MAX / 20;
  for (let id = 1; id <= questions; id++) agent.server.say(closeRequest(id));
  await settled();
  assert(agent.closed?.includes("the peer reads nothing"), agent.closed);
});
