import { openServerConnection } from "../../net/http2/server_connection.ts";
import { DialReports } from "../../platform/conduits/dial_reports.ts";
import { isStill } from "../routing/registry.ts";
import { LiveConduits } from "../../platform/conduits/live_conduits.ts";
import { assert, assertEquals, assertMatch } from "@std/assert";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import {
  certifiedCaller,
  socketCaller,
} from "../../tests/support/memory/fake_caller.ts";
import { fakePeers } from "../../tests/support/memory/fake_forwarder.ts";
import { FakeLink } from "../../tests/support/memory/fake_link.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import {
  certified,
  MemoryStream,
} from "../../tests/support/memory/memory_stream.ts";
import { SILENT_OBSERVER } from "../../proto/link/link.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import { CallerLoads } from "../routing/caller_loads.ts";
import { type CallerDial, Dialer } from "../routing/dialer.ts";
import { Registry } from "../routing/registry.ts";
import { PEER_CONNECT_MS, PeerForwarder } from "./peer_way.ts";
import { peerFrontend } from "./peer_frontend.ts";
import { PEER_CONDUITS_MAX, PEER_IDLE_MS, PeerServer } from "./peer_server.ts";

const TARGET = { protocol: "tcp", address: "edge-7:5432" };
const ANSWERS = { received() {}, sent() {}, ended() {} };

/** Servers s1, where callers are, and s2, which has agents. */
class TwoServers {
  readonly timers = new FakeTimers();
  readonly agents = new Registry({
    strategies: ["default"],
    clock: this.timers,
    random: () => 0,
  });
  readonly frontend: ReturnType<typeof peerFrontend>;
  /** Of callers of s2. */
  readonly loads = new CallerLoads();
  readonly forwarder: PeerForwarder;
  readonly first: Dialer;
  /** What s2 was asked for. */
  readonly arrived: CallerDial[] = [];
  readonly refused: string[] = [];
  isTrusted = true;
  /** So many calls are refused unread. */
  refusals = 0;
  /** How s2 takes connections. */
  port: "open" | "closed" | "silent" = "open";
  connections = 0;
  conduit: Conduit | undefined;
  error: DialError | undefined;

  constructor(policies: { first?: boolean; second?: boolean } = {}) {
    const { timers } = this;
    const reports = new DialReports(
      new LiveConduits(new FakeTimers()),
      this.loads,
    );
    const second = this.#dialer(this.agents, { reports });
    this.frontend = peerFrontend({
      timers,
      observer: SILENT_OBSERVER,
      messageBytesMax: 1024 * 1024,
      loads: this.loads,
      join: (caller, target) => reports.join(caller, target),
      hasPolicy: policies.second === true,
      isServer: () => this.isTrusted && this.refusals-- <= 0,
      dial: (request, answer) => {
        this.arrived.push(request);
        return second.dial(request, answer);
      },
      refused: (_from, reason) => void this.refused.push(reason),
    });
    this.forwarder = new PeerForwarder({
      timers,
      serverId: "s1",
      hasPolicy: policies.first === true,
      observer: SILENT_OBSERVER,
      messageBytesMax: 1024 * 1024,
      keepalive: { intervalMs: 4_000, timeoutMs: 6_000 },
      receiveBudget: new ReceiveBudget(),
      upstreamTo: () => ({
        authority: "tunnel-server",
        scheme: "https",
        connect: async (use, signal) => use(await this.#connect(signal)),
      }),
    });
    const none = new Registry({
      strategies: ["default"],
      clock: timers,
      random: () => 0,
    });
    this.first = this.#dialer(none, {
      peers: fakePeers(["s2"]),
      forwarder: this.forwarder,
    });
  }

  link(): FakeLink {
    const link = new FakeLink("edge-7");
    this.agents.add(link);
    return link;
  }

  async dial(more: Partial<CallerDial> = {}, early = "") {
    this.conduit = this.error = undefined;
    const pending = this.first.dial({
      target: TARGET,
      node: undefined,
      caller: socketCaller(),
      ...more,
      takeEarlyData: () => new TextEncoder().encode(early),
    }, {
      connected: (conduit) => this.conduit = conduit,
      failed: (error) => this.error = error,
    });
    await settled();
    return pending;
  }

  /** Both ends of a connection that was made. */
  async connected(link: FakeLink) {
    await this.dial();
    const [near, far] = MemoryConduit.pair();
    const target = new ConduitProbe(far);
    link.dials.at(-1)!.events.onConnected(near);
    await settled();
    return { caller: new ConduitProbe(this.conduit!), target };
  }

  #dialer(
    registry: Registry,
    more: Partial<ConstructorParameters<typeof Dialer>[0]> = {},
  ): Dialer {
    return new Dialer({
      registry,
      timers: this.timers,
      dialTimeoutMs: 10_000,
      reports: new DialReports(undefined, { connected: () => ANSWERS }),
      ...more,
    });
  }

  async #connect(signal: AbortSignal): Promise<MemoryStream> {
    this.connections++;
    if (this.port === "closed") throw new Error("connection refused");
    if (this.port === "silent") {
      await new Promise((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason))
      );
    }
    const [near, far] = MemoryStream.pair("h2");
    openServerConnection(far, {
      serves: this.frontend({
        identity: certified("tunnel-server"),
        remoteAddress: "10.0.0.1:4711",
      }),
      timers: this.timers,
    });
    return near;
  }

  [Symbol.dispose](): void {
    this.forwarder.stop("the test is over");
  }
}

Deno.test("a forwarded dial is the caller's, with its words, and goes no further", async () => {
  using servers = new TwoServers();
  const link = servers.link();
  const caller = certifiedCaller("ops", { organizations: ["admins"] });
  await servers.dial({ caller, node: "id=edge-7" }, "hello");
  const [dial] = link.dials;
  assertEquals(dial!.target, TARGET);
  const [near, far] = MemoryConduit.pair();
  const target = new ConduitProbe(far);
  dial!.events.onConnected(near);
  await target.received(5);
  const [arrived] = servers.arrived;
  assertEquals([arrived!.node, arrived!.oneAgent], ["id=edge-7", false]);
  assertEquals(arrived!.caller.identity.commonName, "ops");
  assertEquals(arrived!.caller.identity.certificate?.organizations, ["admins"]);
  assertEquals(arrived!.caller.forwardedBy, "s1");
  await servers.dial({ oneAgent: true });
  assertEquals(servers.arrived[1]!.oneAgent, true);
});

Deno.test("bytes, ends and resets pass both servers", async () => {
  using servers = new TwoServers();
  const link = servers.link();
  const { caller, target } = await servers.connected(link);
  assertEquals(servers.loads.of({ forwardedBy: "s1" }), 1);
  caller.send("query");
  await target.received(5);
  await caller.finish();
  target.send("some rows");
  await caller.received(9);
  target.finish();
  await caller.closed;
  assertEquals(caller.end?.kind, "clean");
  await settled();
  assertEquals(servers.loads.of({ forwardedBy: "s1" }), 0);
  const second = await servers.connected(link);
  second.target.reset("out of rows");
  await second.caller.closed;
  assertEquals(second.caller.end, { kind: "reset", reason: "out of rows" });
  const third = await servers.connected(link);
  await third.caller.reset("enough");
  assertEquals(third.target.end?.kind, "reset");
  assertEquals(servers.connections, 1, "one channel for all");
});

Deno.test("a server that has no agent says so at once, and the caller learns who was asked", async () => {
  using servers = new TwoServers();
  await servers.dial();
  assertEquals(servers.error?.reason, "no-agent");
  assertMatch(
    servers.error!.message,
    /^No agent available: no agent is connected .* \(asked server s2 \(s2\.example:8091\)\)$/,
  );
  // For nodes, names of servers are none of their business.
  await servers.dial({ caller: { ...socketCaller() } });
  using hiding = new TwoServers({ first: true, second: true });
  await hiding.dial();
  assert(!hiding.error!.message.includes("s2"));
});

Deno.test("a server without a policy does not decide for one that has one", async () => {
  using servers = new TwoServers({ first: true });
  const link = servers.link();
  await servers.dial();
  assertEquals(servers.error?.reason, "refused");
  assertMatch(servers.error!.message, /server s1 has a policy, and this one/);
  assertEquals([link.dials.length, servers.refused.length], [0, 1]);
  assertEquals(servers.loads.of({ forwardedBy: "s1" }), 0);
});

Deno.test("a certificate of an authority that has gone is shown a new connection, three at most", async () => {
  using servers = new TwoServers();
  servers.isTrusted = false;
  await servers.dial();
  assertEquals(servers.error?.reason, "link-lost");
  assertEquals([servers.connections, servers.arrived.length], [3, 0]);
  servers.isTrusted = true;
  const link = servers.link();
  await servers.dial();
  assertEquals(link.dials.length, 1);
});

Deno.test("what was sent behind a dial that was refused unread is sent again with it", async () => {
  using servers = new TwoServers();
  const link = servers.link();
  await servers.connected(link);
  servers.refusals = 1;
  const encode = (text: string) => new TextEncoder().encode(text);
  const failures: DialError[] = [];
  const pending = servers.first.dial({
    target: TARGET,
    node: undefined,
    caller: socketCaller(),
    takeEarlyData: () => encode("one "),
  }, { connected() {}, failed: (error) => void failures.push(error) });
  assertEquals(pending.sendEarly!(encode("two ")), 4);
  await settled();
  assertEquals([servers.connections, link.dials.length], [2, 2]);
  assertEquals(failures, []);
  const [near, far] = MemoryConduit.pair();
  const target = new ConduitProbe(far);
  link.dials.at(-1)!.events.onConnected(near);
  await target.received(8);
  assertEquals(target.text, "one two ");
});

Deno.test("a server that refuses a dial unread and is gone then costs it three seconds, too", async () => {
  using servers = new TwoServers();
  servers.refusals = 1;
  const dialing = servers.dial();
  while (servers.connections === 0) await Promise.resolve();
  servers.port = "silent";
  await dialing;
  assertEquals(servers.connections, 2);
  await servers.timers.advance(PEER_CONNECT_MS);
  assertEquals(servers.error?.reason, "link-lost");
});

Deno.test("a server that cannot be reached is named with why", async () => {
  using servers = new TwoServers();
  servers.port = "closed";
  await servers.dial();
  assertEquals(
    servers.error?.message,
    "Cannot dial edge-7:5432: server s2 (s2.example:8091) was lost: " +
      "connection refused",
  );
  await servers.dial();
  assertEquals(servers.connections, 1, "not again within a second");
});

Deno.test("a server that does not answer costs a dial three seconds", async () => {
  using servers = new TwoServers();
  servers.port = "silent";
  await servers.dial({}, "words that wait");
  servers.timers.advance(PEER_CONNECT_MS - 1);
  assertEquals(servers.error, undefined);
  servers.timers.advance(1);
  assertEquals(servers.error?.reason, "link-lost");
  const [peer] = fakePeers(["s2"]).all;
  const request = { target: TARGET, node: undefined, caller: socketCaller() };
  const way = servers.forwarder.wayTo(peer!, {
    ...request,
    id: "f0e1d2c3b4a59687",
    takeEarlyData: () => new Uint8Array(0),
  }, false);
  const again = await servers.dial();
  servers.timers.advance(1_000);
  assert(isStill(way.leadsTo, servers.timers.now()));
  again.cancel();
});

Deno.test("a caller that gives up gives up on both servers, whenever that is", async () => {
  using servers = new TwoServers();
  const link = servers.link();
  const pending = await servers.dial();
  pending.cancel();
  await settled();
  assertEquals(link.dials[0]!.cancelled, true);
  assertEquals(servers.loads.of({ forwardedBy: "s1" }), 0);
  servers.first.dial({
    target: TARGET,
    node: undefined,
    caller: socketCaller(),
    takeEarlyData: () => new Uint8Array(0),
  }, { connected() {}, failed() {} }).cancel();
  await settled();
  assertEquals(link.dials.filter(({ cancelled }) => !cancelled), []);
});

Deno.test("a channel is kept while it is used, and closed a minute later", async () => {
  using servers = new TwoServers();
  const link = servers.link();
  const { caller, target } = await servers.connected(link);
  const idle = async () => {
    for (let ms = 0; ms < PEER_IDLE_MS; ms += 1_000) {
      assertEquals(servers.forwarder.servers, 1);
      await servers.timers.advance(1_000);
    }
  };
  await idle();
  caller.finish();
  target.finish();
  await caller.closed;
  await settled();
  await idle();
  assertEquals(servers.forwarder.servers, 0);
});

Deno.test("the end of a server ends what it forwards, and leaves no timer", async () => {
  const servers = new TwoServers();
  const { caller } = await servers.connected(servers.link());
  servers.forwarder.stop("the server is stopping");
  assertEquals((await caller.closed).kind, "lost");
  await settled();
  assertEquals(servers.timers.pendingCount, 0);
});

Deno.test("what one server sends another is bounded", () => {
  const timers = new FakeTimers();
  const [peer] = fakePeers(["s2"]).all;
  const server = new PeerServer(peer!, {
    authority: "x",
    scheme: "https",
    connect: () => Promise.reject(new Error("never asked")),
  }, {
    timers,
    serverId: "s1",
    hasPolicy: false,
    observer: SILENT_OBSERVER,
    messageBytesMax: 1024,
    keepalive: { intervalMs: 1, timeoutMs: 1 },
    receiveBudget: new ReceiveBudget(),
  }, () => {});
  for (let dials = 0; dials < PEER_CONDUITS_MAX; dials++) {
    assertEquals(server.enter(), undefined);
  }
  const refusal = server.enter();
  assertEquals([refusal?.reason, refusal?.loss], ["refused", "unprocessed"]);
  server.leave();
  assertEquals(server.enter(), undefined);
});
