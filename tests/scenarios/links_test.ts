import { assert, assertEquals, assertRejects } from "@std/assert";
import { Connector } from "../../agent/links/connector.ts";
import type { AttemptEvents } from "../../agent/links/agent_links.ts";
import { openClientConnection } from "../../net/http2/client_connection.ts";
import { startCall } from "../../proto/grpc/client.ts";
import { LinkError } from "../../proto/link/hello.ts";
import { NO_IDENTIFIERS } from "../../proto/peer/identifiers.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import { type AgentLink, SILENT_OBSERVER } from "../../proto/link/link.ts";
import { ReceiveBudget } from "../../proto/streams/receive_budget.ts";
import { STREAM_IDS_RESERVED } from "../../proto/streams/stream_table.ts";
import { CLOSE_GRACE_MS } from "../../proto/link/streams_server.ts";
import {
  ADMITTED,
  anonymousAuthorizer,
  authorize,
} from "../../server/links/authorizer.ts";
import {
  AgentPort,
  LEAVE_MS,
  RETIRED_CHECK_MS,
} from "../../server/links/agent_port.ts";
import { ConduitProbe, settled } from "../support/memory/conduit_probe.ts";
import { FakeTimers } from "../support/memory/fake_timers.ts";
import { MemoryConduit } from "../support/memory/memory_conduit.ts";
import { certified, MemoryStream } from "../support/memory/memory_stream.ts";

// The agent port and the agent's connector, joined in memory: who may link, by
// which carrier, and what happens when a link's stream ids run out.

/** Room for some ten conduits before a link counts as used up. */
const NEAR_THE_END = 2 ** 31 - 1 - 2 * (STREAM_IDS_RESERVED + 10);

const INSTANCE = "0123456789abcdef";

const ANONYMOUS = { ...certified(""), kind: "anonymous" as const };

/** Takes whoever answers. */
function events(
  closed: (reason: string) => void = () => {},
): AttemptEvents {
  return { claim: () => true, closed, draining: () => {}, doubted: () => {} };
}

const neverAnswers = () => ({
  onBody: () => {},
  onHalfClose: () => {},
  onWritable: () => {},
  onCancel: () => {},
});

function setUp(options: {
  alpn?: string;
  identity?: PeerIdentity;
  allowAnonymous?: boolean;
  firstStreamId?: number;
  instanceId?: string;
} = {}) {
  const timers = new FakeTimers();
  const links: AgentLink[] = [];
  const said: string[] = [];
  const shared = {
    keepaliveMs: 10_000,
    messageBytesMax: 1 << 20,
    timers,
    receiveBudget: new ReceiveBudget(),
  };
  const known = anonymousAuthorizer(options.allowAnonymous ?? false, "some");
  const authorizers = [known, () => ADMITTED];
  const port = new AgentPort({
    ...shared,
    serverId: "s1",
    serverCount: () => 3,
    instanceId: "first",
    admit: (candidate) => authorize(authorizers, candidate),
    randomness: (bytes) => crypto.getRandomValues(bytes),
    methodsFor: () => ({ "/test.Slow/Call": neverAnswers }),
    authorities: () => Uint8Array.of(1),
    firstStreamId: options.firstStreamId ?? 1,
    observer: {
      ...SILENT_OBSERVER,
      linked: (link) => links.push(link),
      unlinked: (link, reason) => {
        links.splice(links.indexOf(link), 1);
        said.push(`unlinked: ${reason}`);
      },
      refused: (remoteAddress, reason) =>
        said.push(`refused ${remoteAddress}: ${reason}`),
      counted: () => {},
    },
  });
  const connector = new Connector({
    ...shared,
    agentId: "a1",
    instanceId: options.instanceId ?? INSTANCE,
    onDuplicate: (message) => said.push(`told: ${message}`),
    identifiers: { ...NO_IDENTIFIERS, host: ["node1"] },
    carriers: ["streams", "packets"],
    alpnProtocols: [],
    authority: "server",
    observer: SILENT_OBSERVER,
    onDial: (_target, answer) => {
      const [near, far] = MemoryConduit.pair();
      new ConduitProbe(far);
      answer.connected(near);
      return { cancel: () => {} };
    },
    openStream: (_alpn, use) => {
      const [server, agent] = MemoryStream.pair(
        options.alpn ?? "tunnel/1",
        options.identity ?? certified("node1"),
      );
      port.accept(server);
      return use(agent);
    },
    fellBack: (serverId) => said.push(`fell back from ${serverId}`),
  });
  return { timers, links, said, connector, port };
}

Deno.test("an agent with a certificate links by streams and says who it is", async () => {
  const { connector, links } = setUp();
  const link = await connector.connect(events());
  await settled();
  assertEquals([link.serverId, link.serverCount, link.carrier], [
    "s1",
    3,
    "streams",
  ]);
  const { peer } = links[0]!;
  assertEquals([peer.agentId, peer.carrier, peer.identifiers.host], [
    "a1",
    "streams",
    ["node1"],
  ]);
  assertEquals(peer.identity.commonName, "node1");
});

Deno.test("where ALPN says h2 the same ends speak packets, and warn of it", async () => {
  const { connector, links, said } = setUp({ alpn: "h2" });
  const link = await connector.connect(events());
  await settled();
  assertEquals([link.carrier, links[0]?.peer.carrier], ["packets", "packets"]);
  assertEquals(said, ["fell back from s1"]);
});

for (const alpn of ["tunnel/1", "h2"]) {
  Deno.test(`without a certificate nobody is an agent, and is told so (${alpn})`, async () => {
    const { connector, links, said } = setUp({ alpn, identity: ANONYMOUS });
    await assertRejects(
      () => connector.connect(events()),
      LinkError,
      "Cannot admit this agent: it showed no certificate",
    );
    await settled();
    assertEquals(links, []);
    assert(said[0]?.startsWith("refused 10.0.0.7:4711: Cannot admit"));
  });
}

for (const alpn of ["tunnel/1", "h2"]) {
  Deno.test(`a link says which process of its node it is of (${alpn})`, async () => {
    const { connector, links, said } = setUp({ alpn });
    await connector.connect(events());
    await settled();
    assertEquals(links[0]?.peer.instanceId, INSTANCE);
    links[0]?.warnOfDuplicate?.("twice");
    await settled();
    assertEquals(
      said.includes("told: twice"),
      alpn === "tunnel/1",
      "packets have no words for it",
    );
  });

  Deno.test(`an instance id that is none is not kept (${alpn})`, async () => {
    const { connector, links } = setUp({ alpn, instanceId: "a b".repeat(9) });
    await connector.connect(events());
    await settled();
    assertEquals(links[0]?.peer.instanceId, undefined);
  });
}

Deno.test("anonymous agents link where the user allowed it", async () => {
  const { connector, links } = setUp({
    identity: ANONYMOUS,
    allowAnonymous: true,
  });
  await connector.connect(events());
  await settled();
  assertEquals(links[0]?.peer.identity.kind, "anonymous");
});

Deno.test("a link near its last stream id is replaced, and serves what it has", async () => {
  const { connector, links, timers, said } = setUp({
    firstStreamId: NEAR_THE_END,
  });
  const closed: string[] = [];
  await connector.connect(events((reason) => closed.push(reason)));
  await settled();
  const old = links[0]!;
  const kept = await dial(old);
  for (let spent = 0; spent < 12 && closed.length === 0; spent++) {
    (await dial(old)).reset("next");
    await settled();
  }
  assertEquals(closed, ["the stream ids of the link are running out"]);
  assertEquals(old.isDraining, true);
  await connector.connect(events());
  await settled();
  assertEquals(links.length, 2);
  // What ran on the old link still runs, however long it takes.
  await timers.advance(RETIRED_CHECK_MS);
  assertEquals(kept.end(), undefined);
  kept.reset("done");
  await settled();
  await timers.advance(RETIRED_CHECK_MS);
  assertEquals(links.length, 1);
  assertEquals(said, ["unlinked: the link was replaced by a new one"]);
});

Deno.test("a link that was replaced and is lost leaves no timer behind", async () => {
  const { connector, links, timers } = setUp({ firstStreamId: NEAR_THE_END });
  const closed: string[] = [];
  await connector.connect(events((reason) => closed.push(reason)));
  await settled();
  const before = timers.pendingCount;
  const old = links[0]!;
  for (let spent = 0; spent < 12 && closed.length === 0; spent++) {
    (await dial(old)).reset("next");
    await settled();
  }
  assertEquals(timers.pendingCount, before + 1, "nobody looks when it is idle");
  old.close("the cable was cut");
  await settled();
  timers.advance(CLOSE_GRACE_MS);
  assertEquals(timers.pendingCount, 0);
});

/** A conduit on `link`, connected. */
function dial(link: AgentLink) {
  const { promise, resolve, reject } = Promise.withResolvers<
    { end(): unknown; reset(reason: string): void }
  >();
  link.dial({ protocol: "tcp", address: "x:1" }, {
    onConnected: (conduit) => {
      let closed: unknown;
      conduit.attach({
        onData: (chunk) => conduit.consumed(chunk.length),
        onWritable: () => {},
        onEnd: () => {},
        onClose: (end) => void (closed = end),
      });
      resolve({ end: () => closed, reset: (reason) => conduit.reset(reason) });
    },
    onFailed: reject,
  });
  return promise;
}

Deno.test("a server that is going tells agents of ours and sends callers away, and keeps what runs", async () => {
  const { port, connector, timers, links } = setUp();
  const received: string[] = [];
  await connector.connect({
    ...events((reason) => received.push(`closed: ${reason}`)),
    draining: () => received.push("draining"),
  });
  const caller = () => {
    const [server, client] = MemoryStream.pair("h2", certified("node2"));
    port.accept(server);
    const connection = openClientConnection(client, { timers });
    return connection;
  };
  const busy = caller();
  const ended: string[] = [];
  startCall(busy, {
    path: "/test.Slow/Call",
    authority: "server",
    scheme: "https",
  }, {
    onMetadata: () => {},
    onBody: () => {},
    onWritable: () => {},
    onStatus: ({ message }) => ended.push(message),
  });
  await settled();
  port.drain("going", 1_000);
  assertEquals(port.leaving, 1);
  await settled();
  await settled();
  assertEquals(received, ["draining"]);
  assertEquals([busy.isUsable, ended], [false, []]);
  // Whom nobody else serves is served.
  const late = caller();
  await settled();
  assertEquals(late.isUsable, true);
  timers.advance(LEAVE_MS);
  assertEquals([port.leaving, links.length], [0, 1]);
});

Deno.test("a link of the packets carrier gets no GOAWAY: what it carries would be lost", async () => {
  const { port, connector, links } = setUp({ alpn: "h2" });
  const received: string[] = [];
  await connector.connect(events((reason) => received.push(reason)));
  port.drain("going", 1_000);
  await settled();
  assertEquals([port.leaving, received, links.length], [0, [], 1]);
  assertEquals(links[0]!.isDraining, false);
});

Deno.test("an agent that is linked already is no link, and nobody's fault", async () => {
  const { connector, links, said } = setUp();
  await assertRejects(
    () => connector.connect({ ...events(), claim: () => false }),
    LinkError,
    "this server is linked already",
  );
  await settled();
  assertEquals([links, said], [[], []]);
});

Deno.test("a crowd of agents is told of a drain in turns, and not all at once", async () => {
  const { connector, port, timers } = setUp();
  let told = 0;
  const agent = () =>
    connector.connect({ ...events(), draining: () => void told++ });
  await Promise.all(Array.from({ length: 130 }, agent));
  port.drain("the server is stopping", 1_000);
  await settled();
  assertEquals(told, 64);
  await timers.advance(0);
  assertEquals(told, 130);
});
