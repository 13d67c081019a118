import { assert, assertEquals } from "@std/assert";
import { CONNECT_PATH, parseServers } from "./capabilities.ts";
import {
  counting,
  CountingObserver,
} from "../../tests/support/rigs/carrier_rig.ts";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import { ConnectionPair } from "../../tests/support/memory/connection_pair.ts";
import { QUIET_CONNECTION } from "../../tests/support/memory/fake_link.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { ScriptedCaller } from "../../tests/support/watch/packet_script.ts";
import { ANONYMOUS } from "../peer/peer_identity.ts";
import { StatusCode } from "../grpc/status.ts";
import type { DialRequest, Int64, Packet } from "../packets/packet.ts";
import type { Conduit, ConduitEnd } from "../transfer/conduit.ts";
import type { DialError } from "../peer/dial_error.ts";
import type {
  AgentLink,
  LinkAuthorization,
  LinkDialOptions,
  PendingDial,
} from "./link.ts";
import { agentService } from "./packets_server.ts";
import { GONE_LINGER_MS } from "./packet_conduit.ts";
import { CLOSED_IDS_MAX } from "./packets_mux.ts";
import {
  CONDUIT_QUEUE_BYTES,
  STALL_MS,
  STALL_PROGRESS_BYTES,
} from "./packets_port.ts";
import {
  CLOSE_QUIET_MS,
  DRAIN_BYTES_PER_MS,
  GONE_QUIET_MS,
} from "./quiet_close.ts";

const PEER = {
  serverId: "s2",
  instanceId: "bbbbbbbb",
  address: "b.example:8091",
};

const closeResponse = (connectId: Int64, error = ""): Packet => ({
  type: "CLOSE_RSP",
  error,
  connectId,
  reset: "",
});

/** Our server and agents that say what they are told. */
class Server {
  readonly timers = new FakeTimers();
  readonly observer = new CountingObserver();
  readonly links: AgentLink[] = [];
  readonly closed: string[] = [];
  readonly pair: ConnectionPair;
  admit: (token: string) => LinkAuthorization = () => undefined;

  constructor() {
    this.pair = new ConnectionPair({
      clock: this.timers,
      methods: {
        [CONNECT_PATH]: agentService({
          serverId: "server-1",
          serverCount: () => 3,
          servers: () => [PEER],
          remoteAddress: "10.0.0.7:4711",
          identity: ANONYMOUS,
          connection: QUIET_CONNECTION,
          randomness: counting(),
          timers: this.timers,
          observer: this.observer,
          admit: (_peer, token) => this.admit(token),
          onLink: (link) => this.links.push(link),
          onLinkClosed: (_link, reason) => this.closed.push(reason),
        }),
      },
    });
  }

  async agent(metadata: Record<string, string> = {}): Promise<GoAgent> {
    const caller = new ScriptedCaller(this.pair.client, CONNECT_PATH, {
      agentid: "agent-x",
      ...metadata,
    });
    await settled();
    return new GoAgent(caller, this.links.at(-1)!);
  }
}

/** A scripted agent and the link that it became. */
class GoAgent {
  failed: DialError | undefined;

  constructor(readonly script: ScriptedCaller, readonly link: AgentLink) {}

  get received(): string[] {
    return this.script.received;
  }

  /** The newest DIAL_REQ's random. */
  get random(): Int64 {
    const requests = this.script.packets.filter((packet) =>
      packet.type === "DIAL_REQ"
    );
    return (requests.at(-1) as DialRequest).random;
  }

  dial(
    protocol = "tcp",
    options: LinkDialOptions = {},
  ): { conduit: Promise<ConduitProbe>; pending: PendingDial } {
    const { promise, resolve } = Promise.withResolvers<ConduitProbe>();
    const pending = this.link.dial({ protocol, address: "t:1" }, {
      onConnected: (conduit) => resolve(new ConduitProbe(conduit)),
      onFailed: (error) => void (this.failed = error),
    }, options);
    return { conduit: promise, pending };
  }

  /** Dials, and answers with `connectId`. */
  async connect(connectId: Int64, protocol = "tcp"): Promise<ConduitProbe> {
    const { conduit } = this.dial(protocol);
    await settled();
    this.accept(connectId);
    return await conduit;
  }

  accept(connectId: Int64): void {
    const { random } = this;
    this.script.say({ type: "DIAL_RSP", error: "", connectId, random });
  }
}

Deno.test("an agent gets the server's id and count, and is known by its metadata", async () => {
  const server = new Server();
  const agent = await server.agent({
    agentidentifiers: "host=Node1&ipv4=1.2.3.4&default-route=true&new-key=1",
  });
  assertEquals(agent.script.metadata.texts("serverid"), ["server-1"]);
  assertEquals(agent.script.metadata.texts("servercount"), ["3"]);
  const { agentId, identifiers, carrier } = server.links[0]!.peer;
  assertEquals([agentId, carrier], ["agent-x", "packets"]);
  assertEquals(identifiers.host, ["node1"]);
  assertEquals(identifiers.defaultRoute, true);
  assertEquals(agent.script.metadata.texts("tunnel-servers"), []);
});

Deno.test("an agent that says its instance is told where servers are", async () => {
  const server = new Server();
  const agent = await server.agent({ "tunnel-instance": "12345678" });
  assertEquals(
    parseServers(agent.script.metadata.text("tunnel-servers")),
    [PEER],
  );
});

Deno.test("bad metadata is refused in Konnectivity's words (TestNewBackend)", async (t) => {
  const refused = async (metadata: Record<string, string>) => {
    const server = new Server();
    const caller = new ScriptedCaller(
      server.pair.client,
      CONNECT_PATH,
      metadata,
    );
    await settled();
    assertEquals(server.links.length, 0);
    return caller.received;
  };
  await t.step("no agent id", async () => {
    assertEquals(await refused({}), [
      "status UNKNOWN expected one agent ID in the context, got []",
    ]);
  });
  await t.step("identifiers that are no URL query", async () => {
    const [line] = await refused({
      agentid: "a",
      agentidentifiers: "host=%zz",
    });
    assert(line!.startsWith("status UNKNOWN Cannot read agent identifiers"));
  });
});

Deno.test("an agent that is not admitted receives the reason", async () => {
  const server = new Server();
  server.admit = (token) => ({
    code: StatusCode.UNAUTHENTICATED,
    message: `the token "${token}" is not ours`,
  });
  const agent = await server.agent({ authorization: "Bearer abc" });
  assertEquals(agent.received, [
    'status UNAUTHENTICATED the token "abc" is not ours',
  ]);
  assertEquals(server.links.length, 0);
});

Deno.test("two links with one agentID and equal connectIDs never meet", async () => {
  const server = new Server();
  const one = await server.agent();
  const two = await server.agent();
  const first = await one.connect(1);
  const second = await two.connect(1);
  one.script.data(1, "of one");
  two.script.data(1, "of two");
  await first.send("to one");
  assertEquals([first.text, second.text], ["of one", "of two"]);
  assertEquals(two.received.filter((line) => line.startsWith("DATA")), []);
  two.script.say(closeResponse(1));
  await second.ended;
  await one.script.data(1, ", still");
  assertEquals(first.text, "of one, still");
});

Deno.test("an answer to a cancelled dial is closed, and DIAL_CLS was sent", async () => {
  const agent = await new Server().agent();
  const { pending } = agent.dial();
  await settled();
  pending.cancel();
  agent.accept(7);
  await agent.script.data(7, "a banner");
  assertEquals(agent.received.slice(1), ["DIAL_CLS", "CLOSE_REQ 7"]);
  assertEquals(agent.link.load, 0);
});

Deno.test("an answer to a dial that never was is closed", async () => {
  const agent = await new Server().agent();
  agent.script.say(
    { type: "DIAL_RSP", error: "", connectId: 3, random: 99 },
    { type: "DIAL_RSP", error: "boom", connectId: 0, random: 98 },
  );
  await settled();
  assertEquals(agent.received, ["CLOSE_REQ 3"]);
});

Deno.test("DIAL_CLS of an agent fails the dial", async () => {
  const agent = await new Server().agent();
  agent.dial();
  await settled();
  await agent.script.say({ type: "DIAL_CLS", random: agent.random });
  assertEquals(agent.failed?.reason, "dial-closed");
});

Deno.test("a connectID that is in use is no answer", async () => {
  const agent = await new Server().agent();
  const first = await agent.connect(1);
  agent.dial();
  await settled();
  agent.accept(1);
  await settled();
  assertEquals(agent.failed?.reason, "endpoint");
  assertEquals(first.end, undefined);
});

Deno.test("DATA for an unknown connectID is answered once", async () => {
  const agent = await new Server().agent();
  for (let i = 0; i < 5; i++) agent.script.data(44, "who is this");
  await agent.script.data(0, "missing id");
  assertEquals(agent.received, ["CLOSE_REQ 44"]);
});

Deno.test("CLOSE_REQ for a Go agent waits until nothing moves", async () => {
  const server = new Server();
  const agent = await server.agent();
  const conduit = await agent.connect(1);
  conduit.send("upload");
  await conduit.finish();
  server.timers.advance(CLOSE_QUIET_MS - 1);
  await agent.script.data(1, "answer");
  assertEquals(agent.received.slice(1), ['DATA 1 "upload"']);
  assertEquals(conduit.text, "answer");
  await server.timers.advance(2 * CLOSE_QUIET_MS);
  assertEquals(agent.received.at(-1), "CLOSE_REQ 1");
  agent.script.say(closeResponse(1));
  assertEquals(await conduit.closed, { kind: "clean" });
  assertEquals(server.timers.pendingCount, 0);
});

Deno.test("CLOSE_REQ comes sooner when nobody waits for an answer", async (t) => {
  const gone = async (uploadBytes: number, pauseMs: number) => {
    const server = new Server();
    const agent = await server.agent();
    const conduit = await agent.connect(1);
    await conduit.send(new Uint8Array(uploadBytes));
    server.timers.advance(pauseMs);
    conduit.finish(true);
    const isClosed = async () => {
      await settled();
      return agent.received.at(-1) === "CLOSE_REQ 1";
    };
    return { timers: server.timers, isClosed };
  };
  await t.step("at once, when the last bytes left long ago", async () => {
    const { isClosed } = await gone(100, GONE_QUIET_MS + 1);
    assertEquals(await isClosed(), true);
  });
  await t.step("behind a short wait after the last bytes", async () => {
    const { timers, isClosed } = await gone(100, 10);
    timers.advance(GONE_QUIET_MS - 11);
    assertEquals(await isClosed(), false);
    timers.advance(2);
    assertEquals(await isClosed(), true);
  });
  await t.step("after the time that a slow target needs for them", async () => {
    const { timers, isClosed } = await gone(500 * DRAIN_BYTES_PER_MS, 0);
    timers.advance(GONE_QUIET_MS + 499);
    assertEquals(await isClosed(), false);
    timers.advance(1);
    assertEquals(await isClosed(), true);
  });
  await t.step("and never later than for those who wait", async () => {
    const { timers, isClosed } = await gone(5_000 * DRAIN_BYTES_PER_MS, 0);
    timers.advance(CLOSE_QUIET_MS);
    assertEquals(await isClosed(), true);
  });
});

Deno.test("CLOSE_RSP of a Go agent ends both directions behind its data", async () => {
  const agent = await new Server().agent();
  const conduit = await agent.connect(1n << 60n);
  agent.script.data(1n << 60n, "all of it");
  agent.script.say(closeResponse(1n << 60n));
  await conduit.ended;
  assertEquals(conduit.text, "all of it");
  conduit.finish();
  assertEquals(await conduit.closed, { kind: "clean" });
});

Deno.test("DRAIN is seen; unknown packets and DIAL_REQ of an agent are ignored", async () => {
  const agent = await new Server().agent();
  agent.script.say(
    { type: "UNKNOWN", code: 77 },
    { type: "DIAL_REQ", protocol: "tcp", address: "a:1", random: 1 },
    { type: "DRAIN" },
  );
  await settled();
  assertEquals(agent.link.isDraining, true);
  assertEquals(agent.received, []);
});

Deno.test("one DATA message of 5 MiB costs a Go agent nothing", async () => {
  const agent = await new Server().agent();
  const conduit = await agent.connect(1);
  agent.script.data(1, new Uint8Array(5 * 1024 * 1024));
  await conduit.received(5 * 1024 * 1024);
});

Deno.test("bytes that are no packet end the link with a reason", async () => {
  const server = new Server();
  const agent = await server.agent();
  const conduit = await agent.connect(1);
  agent.script.call.sendMessage(Uint8Array.of(0x0a, 0xff));
  assertEquals((await conduit.closed).kind, "lost");
  await settled();
  assert(agent.received.at(-1)!.startsWith("status INVALID_ARGUMENT"));
  assertEquals(server.closed.length, 1);
  assertEquals(server.observer.failures, [StatusCode.INVALID_ARGUMENT]);
});

Deno.test("links that end badly are counted by status, once each", async () => {
  const server = new Server();
  const [cancelled, ended, closed, lost] = [
    await server.agent(),
    await server.agent(),
    await server.agent(),
    await server.agent(),
  ];
  cancelled.script.call.cancel();
  ended.script.call.halfClose();
  await settled();
  // Our own shutdown is nobody's error.
  closed.link.close("the server is stopping");
  await settled();
  assertEquals(server.observer.failures, [StatusCode.CANCELLED]);
  await server.pair.break("EOF");
  assertEquals(server.observer.failures, [
    StatusCode.CANCELLED,
    StatusCode.UNAVAILABLE,
  ]);
  assertEquals(lost.link.load, 0);
});

Deno.test("a conduit that is not read holds the link for 10 s and is then reset alone", async () => {
  const server = new Server();
  const agent = await server.agent();
  const stalled = await agent.connect(1);
  const other = await agent.connect(2);
  stalled.stopReading();
  await agent.script.data(1, new Uint8Array(CONDUIT_QUEUE_BYTES));
  agent.script.data(2, "no harm so far");
  await other.received(14);
  assertEquals(server.timers.pendingCount, 0);

  agent.script.data(1, new Uint8Array(12 * 1024 * 1024));
  await agent.script.data(2, "stuck behind");
  assertEquals(other.text, "no harm so far");
  assertEquals(stalled.end, undefined);
  assertEquals(server.observer.holding, 1);
  server.timers.advance(STALL_MS);
  const end = await stalled.closed;
  assert(end.kind === "reset" && end.reason.includes("not read within 10 s"));
  await other.received(26);
  assertEquals(other.end, undefined);
  assertEquals(server.observer.stalled, 1);
  assertEquals(server.observer.holding, 0);
  assertEquals(
    agent.received.filter((line) => line.startsWith("CLOSE_REQ")),
    ["CLOSE_REQ 1"],
  );
});

/** A conduit over its bound, read only when the test says so. */
async function overfull(server: Server) {
  const agent = await server.agent();
  const { promise, resolve } = Promise.withResolvers<Conduit>();
  agent.link.dial({ protocol: "tcp", address: "t:1" }, {
    onConnected: resolve,
    onFailed() {},
  });
  await settled();
  agent.accept(1);
  const conduit = await promise;
  const state = { arrived: 0, end: undefined as ConduitEnd | undefined };
  conduit.attach({
    onData: (chunk) => void (state.arrived += chunk.length),
    onWritable() {},
    onEnd() {},
    onClose: (end) => void (state.end = end),
  });
  await agent.script.data(1, new Uint8Array(2 * CONDUIT_QUEUE_BYTES));
  assert(state.arrived > CONDUIT_QUEUE_BYTES);
  return { conduit, state };
}

Deno.test("a conduit over its bound that gets on is left alone", async () => {
  const server = new Server();
  const { conduit, state } = await overfull(server);
  assertEquals(server.observer.holding, 1);
  for (let round = 0; round < 3; round++) {
    conduit.consumed(STALL_PROGRESS_BYTES);
    server.timers.advance(STALL_MS);
    assertEquals(state.end, undefined);
  }
  conduit.consumed(state.arrived - 3 * STALL_PROGRESS_BYTES);
  assertEquals(server.observer.holding, 0);
});

Deno.test("taking a byte now and then is not getting on", async () => {
  const server = new Server();
  const { conduit, state } = await overfull(server);
  conduit.consumed(STALL_PROGRESS_BYTES - 1);
  server.timers.advance(STALL_MS);
  assertEquals(state.end?.kind, "reset");
});

Deno.test("closed connectIDs are not remembered for ever", async () => {
  const agent = await new Server().agent();
  for (let id = 1; id <= CLOSED_IDS_MAX + 1; id++) agent.script.data(id, "?");
  await settled();
  agent.script.data(CLOSED_IDS_MAX + 1, "?");
  await agent.script.data(1, "?");
  assertEquals(agent.received.length, CLOSED_IDS_MAX + 2);
  assertEquals(agent.received.at(-1), "CLOSE_REQ 1");
});

Deno.test("conduits take turns when the window is short", async () => {
  const agent = await new Server().agent();
  const conduits = [await agent.connect(1), await agent.connect(2)];
  agent.script.isReading = false;
  for (const conduit of conduits) conduit.send(new Uint8Array(1024 * 1024));
  await settled();
  agent.script.received.length = 0;
  agent.script.isReading = true;
  agent.script.call.consumed(agent.script.bytes);
  await settled();
  const order = agent.script.received.map((line) => line.slice(0, 6));
  const switches = order.filter((line, index) => line !== order[index - 1]);
  assert(switches.length > 20, `${switches.length} turns`);
});

Deno.test("a datagram that a Go agent has cut is dropped and counted, others pass", async () => {
  const server = new Server();
  const agent = await server.agent();
  const connectId = 1;
  const conduit = await agent.connect(connectId, "udp");
  for (const bytes of [4_095, 4_096, 10]) {
    const data = new Uint8Array(bytes);
    agent.script.say({ type: "DATA", connectId, data });
  }
  await settled();
  assertEquals(conduit.chunks.map(({ length }) => length), [4_095, 10]);
  assertEquals([server.observer.dropped, server.observer.cut], [1, 1]);
});

Deno.test("bytes of a connection may come in pieces of any length", async () => {
  const server = new Server();
  const agent = await server.agent();
  const conduit = await agent.connect(1);
  agent.script.say({
    type: "DATA",
    connectId: 1,
    data: new Uint8Array(4_096),
  });
  await conduit.received(4_096);
  assertEquals(server.observer.dropped, 0);
});

Deno.test("the late answer of a dial that was given up is no other's of the same id", async () => {
  const server = new Server();
  const agent = await server.agent();
  const id = "4d65822107fcfd52";
  const { pending } = agent.dial("tcp", { id });
  await settled();
  const first = agent.random;
  pending.cancel();
  let isConnected = false;
  const { conduit } = agent.dial("tcp", { id });
  conduit.then(() => isConnected = true);
  await settled();
  await agent.script.say({
    ...{ type: "DIAL_RSP", error: "", connectId: 7, random: first },
  });
  assertEquals(isConnected, false, "it is connected to the first's target");
  // Who has answered is over with it.
  agent.dial("tcp", { id });
  await settled();
  assertEquals(agent.random, first);
});

Deno.test("data right before CLOSE_RSP with an error is passed on before the error", async () => {
  const server = new Server();
  const agent = await server.agent();
  const caller = await agent.connect(1);
  caller.stopReading();
  const data = new TextEncoder().encode("last words");
  agent.script.say({ type: "DATA", connectId: 1, data });
  await agent.script.say(closeResponse(1, "boom"));
  assertEquals(caller.text, "last words");
  assertEquals(caller.end, undefined);
  caller.startReading();
  assertEquals(await caller.closed, { kind: "reset", reason: "boom" });
  // Who takes none of it is not waited for for ever.
  const slow = await agent.connect(2);
  slow.stopReading();
  agent.script.say({ type: "DATA", connectId: 2, data });
  await agent.script.say(closeResponse(2, "boom"));
  assertEquals(slow.end, undefined);
  server.timers.advance(GONE_LINGER_MS);
  assertEquals(slow.end, { kind: "reset", reason: "boom" });
});

Deno.test("a connection of which one end has said all is no load any more", async () => {
  const server = new Server();
  const agent = await server.agent();
  const caller = await agent.connect(1);
  assertEquals([agent.link.load, agent.link.ending], [1, 0]);
  caller.finish();
  assertEquals([agent.link.load, agent.link.ending], [1, 1]);
  await agent.script.say(closeResponse(1));
  assertEquals([agent.link.load, agent.link.ending], [0, 0]);
});
