import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { NO_IDENTIFIERS } from "../../proto/peer/identifiers.ts";
import type { LinkPeer } from "../../proto/link/link.ts";
import { ANONYMOUS } from "../../proto/peer/peer_identity.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import type { PeerAnnouncement } from "../links/agent_port.ts";
import {
  type EphemeralEvents,
  type Ephemerals,
  MEMBER_PART,
  type PartChange,
} from "../../neighbours/store/ephemerals.ts";
import { formatMember, type MemberRecord } from "./member_record.ts";
import { MEMBER_KEEP_MS, RETURN_MS } from "./members.ts";
import { CLOCK_PUBLISH_MS, Membership, WRITE_MS } from "./membership.ts";
import { PEERS_ONE_ID_MS } from "./peer_problems.ts";
import type { Timer, Timers } from "../../proto/sync/clock.ts";
import {
  KnownAgents,
  type KnownPeer,
  PeerIndex,
  WorkTurns,
} from "./known_agents.ts";

const OWN = "aaaaaaaa";
const B = "bbbbbbbb";
const C = "cccccccc";
const NOW = 1_700_000_000_000;

/** This one, as agents are told of it. */
const OWN_SERVER = {
  serverId: "server-a",
  instanceId: OWN,
  address: "10.0.0.97:8091",
};

function record(
  instanceId: string,
  changed: Partial<MemberRecord> = {},
): MemberRecord {
  return {
    serverId: `server-${instanceId[0]}`,
    instanceId,
    address: `10.0.0.${instanceId.charCodeAt(0)}:8091`,
    startedMs: NOW,
    nowMs: NOW,
    authorities: ["0123456789abcdef"],
    software: "tunnel/1",
    ...changed,
  };
}

function member(
  instanceId: string,
  changed?: Partial<MemberRecord>,
): PartChange {
  const text = formatMember(record(instanceId, changed));
  return { instanceId, part: MEMBER_PART, text };
}

function agents(
  instanceId: string,
  list: readonly (readonly [string, string])[],
  isWhole = true,
): PartChange {
  const text = JSON.stringify({ isWhole, agents: list });
  return { instanceId, part: "agents-00", text };
}

function gone(instanceId: string, part = MEMBER_PART): PartChange {
  return { instanceId, part, text: undefined };
}

/** A membership over a store that does what the test says. */
class Rig implements Ephemerals {
  readonly timers = new FakeTimers();
  readonly #beganMs = this.timers.now();
  readonly published: [string, string | undefined][] = [];
  readonly told: PeerAnnouncement[] = [];
  readonly said: string[] = [];
  /** Which servers came and went. */
  readonly seen: string[] = [];
  readonly metrics = new MetricRegistry();
  readonly membership: Membership;
  events!: EphemeralEvents;

  constructor(
    { serverCount = 1, fixed = [] as { serverId: string; address: string }[] } =
      {},
  ) {
    this.membership = new Membership({
      serverId: "server-a",
      instanceId: OWN,
      software: "tunnel/1",
      serverCount,
      fixed,
      strategies: ["destHost", "default"],
      timers: this.timers,
      wallClock: () => NOW - this.#beganMs + this.timers.now(),
      metrics: this.metrics,
      warn: (line) => this.said.push(line),
      event: (line) => {
        (line.startsWith("server ") ? this.seen : this.said).push(line);
      },
    });
  }

  open(hasStore = true): void {
    this.membership.start({
      address: "10.0.0.97:8091",
      ...(hasStore ? { ephemerals: this } : {}),
      authorities: () => ["0123456789abcdef"],
      onAnnouncement: (news) => this.told.push(news),
    });
  }

  watch(events: EphemeralEvents): void {
    this.events = events;
  }

  put(part: string, text: string | undefined): void {
    this.published.push([part, text]);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** Ids of all servers that a dial may go to. */
  find(address: string, node?: string): string[] {
    const target = { protocol: "tcp" as const, address };
    return this.membership.find(target, node).map(({ serverId }) => serverId);
  }

  get all(): string[] {
    return this.membership.all.map(({ serverId }) => serverId);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.membership.stop();
    assertEquals(this.timers.pendingCount, 0, "a timer is left");
  }
}

/** With this server and two others. */
function three(): Rig {
  const rig = new Rig();
  rig.open();
  rig.events.changed([member(OWN), member(B), member(C)]);
  rig.events.following();
  return rig;
}

function linkPeer(agentId: string): LinkPeer {
  return {
    agentId,
    identifiers: { ...NO_IDENTIFIERS, host: [agentId] },
    identity: ANONYMOUS,
    remoteAddress: "10.1.0.1:4",
    carrier: "streams",
    software: "tunnel/1",
  };
}

Deno.test("agents are told of the others, and how many servers there are", async () => {
  await using rig = three();
  const { servers, serverCount } = rig.told.at(-1)!;
  assertEquals(serverCount, 3);
  assertEquals(
    servers.map(({ serverId, address, instanceId }) =>
      `${serverId} ${instanceId} ${address}`
    ),
    [
      `server-a ${OWN} 10.0.0.97:8091`,
      `server-b ${B} 10.0.0.98:8091`,
      `server-c ${C} 10.0.0.99:8091`,
    ],
  );
  assertEquals(rig.membership.announcement, rig.told.at(-1));
  rig.events.changed([gone(C)]);
  assertEquals(rig.told.at(-1)!.serverCount, 2);
  assertEquals(rig.seen, [
    'server "server-b" at 10.0.0.98:8091 is there',
    'server "server-c" at 10.0.0.99:8091 is there',
    'server "server-c" at 10.0.0.99:8091 is gone: agents no longer learn of it',
  ]);
  const before = rig.told.length;
  rig.events.changed([member(B, { nowMs: NOW + 1 })]);
  assertEquals(rig.told.length, before, "nothing new for agents");
});

Deno.test("before the first look agents are told nothing", async () => {
  await using rig = new Rig({ serverCount: 2 });
  rig.open();
  assertEquals(rig.membership.announcement, undefined);
  assertEquals(rig.membership.serverCount, 2);
  rig.events.following();
  assertEquals(rig.membership.announcement, {
    servers: [OWN_SERVER],
    serverCount: 2,
  });
});

Deno.test("a dial finds the servers that have an agent for it", async () => {
  await using rig = three();
  rig.events.changed([
    agents(B, [["one", "host=one&ipv4=10.9.0.1"], ["two", "host=two"]]),
    agents(C, [["one", "host=ONE"], ["three", "cidr=10.8.0.0%2F16"]]),
  ]);
  assertEquals(rig.find("one:1"), ["server-b", "server-c"]);
  assertEquals(rig.find("10.9.0.1:22"), ["server-b"]);
  assertEquals(rig.find("x:1", "two"), ["server-b"]);
  assertEquals(rig.find("x:1", "id=three"), ["server-c"]);
  assertEquals(rig.find("x:1", "nobody"), []);
  // Strategy default: any agent of each.
  assertEquals(rig.find("elsewhere:1"), ["server-b", "server-c"]);
  rig.events.changed([agents(B, [["two", "host=two"]])]);
  assertEquals(rig.find("one:1"), ["server-c"]);
  rig.events.changed([gone(C), gone(C, "agents-00")]);
  assertEquals(rig.find("x:1", "one"), []);
  assertEquals(rig.find("x:1", "two"), ["server-b"]);
});

Deno.test("a server that cannot say all its agents may have any", async () => {
  await using rig = three();
  rig.events.changed([agents(B, [["one", "host=one"]], false)]);
  assertEquals(rig.find("x:1", "nobody"), ["server-b"]);
  assertEquals(
    rig.membership.all.map(({ agentsAreKnown }) => agentsAreKnown),
    [false, true],
  );
});

Deno.test("servers that somebody has named may have any agent", async () => {
  const fixed = [
    { serverId: "server-a", address: "10.0.0.97:8091" },
    { serverId: "server-z", address: "10.0.0.26:8091" },
  ];
  await using rig = new Rig({ fixed });
  rig.open(false);
  assertEquals(rig.find("x:1", "nobody"), ["server-z"]);
  assertEquals(rig.membership.announcement, {
    servers: [
      { serverId: "server-z", instanceId: "", address: "10.0.0.26:8091" },
      OWN_SERVER,
    ],
    serverCount: 2,
  });
});

Deno.test("agents that come in a crowd are written once a second", async () => {
  await using rig = three();
  const written = () => rig.published.filter(([part]) => part !== MEMBER_PART);
  rig.membership.linked(linkPeer("edge"));
  rig.membership.linked(linkPeer("edge"));
  rig.timers.advance(100);
  assertEquals(written().length, 1);
  assertStringIncludes(written()[0]![1]!, '["edge","host=edge"]');
  for (let at = 0; at < 100; at++) rig.membership.linked(linkPeer("edge2"));
  rig.membership.unlinked(linkPeer("edge"));
  rig.timers.advance(100);
  assertEquals(written().length, 1, "too soon");
  rig.timers.advance(WRITE_MS);
  assertEquals(written().length, 2, "one link of edge is left");
  rig.membership.unlinked(linkPeer("edge"));
  rig.timers.advance(WRITE_MS);
  assertEquals(written().at(-1)![1], undefined, "nobody is left in that shard");
});

Deno.test("a server says again and again what its clock shows, until it goes", async () => {
  await using rig = three();
  const members = () => rig.published.filter(([part]) => part === MEMBER_PART);
  assertEquals(members().length, 1);
  rig.timers.advance(CLOCK_PUBLISH_MS);
  assertEquals(members().length, 2);
  assertStringIncludes(members()[1]![1]!, `"nowMs":${NOW + CLOCK_PUBLISH_MS}`);
  rig.membership.retire();
  assertEquals(members().at(-1)![1], undefined);
  // Its own end is no reason to doubt that others end.
  rig.events.changed([gone(OWN), gone(B)]);
  assertEquals(rig.all, ["server-c"]);
});

Deno.test("an answer without this server itself is not believed", async () => {
  await using rig = three();
  rig.events.changed([agents(B, [["one", "host=one"]])]);
  rig.events.changed([gone(B), gone(B, "agents-00"), gone(C), gone(OWN)]);
  assertEquals(rig.all, ["server-b", "server-c"]);
  assertEquals(rig.find("x:1", "one"), ["server-b"]);
  // It was so: this server has written itself again, and another one has.
  rig.events.changed([
    member(OWN),
    member(B),
    agents(B, [["one", "host=one"]]),
  ]);
  assertEquals(rig.all, ["server-b", "server-c"]);
  rig.timers.advance(RETURN_MS);
  assertEquals(rig.all, ["server-b"]);
  assertEquals(rig.find("x:1", "one"), ["server-b"]);
});

Deno.test("while nothing is seen servers stay, for an hour", async () => {
  await using rig = three();
  rig.events.problem("Cannot see them");
  rig.events.problem("Cannot see them still");
  assertEquals(rig.said, [
    "Cannot see them; the servers that were seen last count for an hour",
  ]);
  rig.timers.advance(MEMBER_KEEP_MS - 1);
  assertEquals(rig.all.length, 2);
  rig.timers.advance(1);
  assertEquals(rig.all, []);
  assertEquals(rig.told.at(-1)!.serverCount, 1);
  rig.events.changed([member(B)]);
  rig.events.following();
  assertEquals(rig.said.at(-1), "the other servers are followed again");
  assertEquals(rig.all, ["server-b"]);
});

Deno.test("two servers with one id, other authorities and other clocks are said once", async () => {
  await using rig = new Rig();
  rig.open();
  rig.events.following();
  rig.events.changed([
    member(OWN),
    member(B, { serverId: "server-a" }),
    member(C, { authorities: ["fedcba9876543210"], nowMs: NOW - 60_000 }),
  ]);
  assertEquals(rig.said.length, 2);
  assertStringIncludes(rig.said[0]!, "trusts none of this server's");
  assertStringIncludes(rig.said[1]!, "is 60 s behind");
  rig.timers.advance(PEERS_ONE_ID_MS + CLOCK_PUBLISH_MS);
  assertEquals(rig.said.length, 3);
  assertStringIncludes(rig.said[2]!, "another process with this server's id");
  assertEquals(rig.membership.serverCount, 2);
  const exposed = rig.metrics.expose();
  for (const kind of ["duplicate-id", "other-authority", "other-clock"]) {
    assertStringIncludes(exposed, `peer_problems{problem="${kind}"} 1`);
  }
  rig.events.changed([member(C, { nowMs: NOW + 50_000 })]);
  assertStringIncludes(
    rig.metrics.expose(),
    'peer_problems{problem="other-clock"} 0',
  );
});

Deno.test("what is left of an earlier life is no other server", async () => {
  await using rig = three();
  const { address } = OWN_SERVER;
  rig.events.changed([
    member("dddddddd", { serverId: "server-a", address }),
    agents("dddddddd", [["one", "host=one"]]),
  ]);
  assertEquals(rig.all, ["server-b", "server-c"]);
  assertEquals(rig.find("x:1", "one"), []);
  assertEquals(rig.membership.serverCount, 3);
});

Deno.test("what others write is hostile", async () => {
  await using rig = three();
  const text = formatMember(record("dddddddd"));
  rig.events.changed([
    { instanceId: "eeeeeeee", part: MEMBER_PART, text },
    { instanceId: "ffffffff", part: MEMBER_PART, text: "{" },
    { instanceId: "gggggggg", part: MEMBER_PART, text: '"x"' },
    member("hhhhhhhh", { address: "http://evil/" }),
    member("iiiiiiii", { serverId: "x".repeat(1_000) }),
    { instanceId: B, part: "agents-00", text: '{"agents":[1,["a"],null]}' },
    { instanceId: C, part: "__proto__", text: "{}" },
  ]);
  assertEquals(rig.all, ["server-b", "server-c"]);
  // One that does not say where it is counts all the same.
  assertEquals(rig.membership.serverCount, 4);
});

const PEER: KnownPeer = {
  serverId: "b",
  address: "b:1",
  agentsAreKnown: true,
};

/** A clock that runs while work is done, and turns that the test gives. */
class SlowTimers implements Timers {
  #nowMs = 0;
  readonly turns: (() => void)[] = [];

  now(): number {
    return this.#nowMs += 1;
  }

  after(_delayMs: number, act: () => void): Timer {
    this.turns.push(act);
    return { cancel: () => void this.turns.splice(this.turns.indexOf(act), 1) };
  }
}

function list(from: number, to: number): string {
  const agents = [];
  for (let at = from; at < to; at++) agents.push([`a${at}`, `host=a${at}`]);
  return JSON.stringify({ isWhole: true, agents });
}

function setUp() {
  const timers = new SlowTimers();
  const index = new PeerIndex(["destHost"]);
  const agents = new KnownAgents(PEER, index, new WorkTurns(timers));
  const has = (name: string) =>
    index.find({ protocol: "tcp", address: `${name}:1` }, undefined).length > 0;
  const finish = () => {
    let turns = 0;
    while (timers.turns.length > 0) {
      timers.turns.shift()!();
      turns++;
    }
    return turns;
  };
  return { agents, has, finish };
}

Deno.test("a long list is read in turns, and until then it may have any agent", () => {
  const { agents, has, finish } = setUp();
  agents.set("agents-00", list(0, 2_000));
  assert(!has("a1999"));
  assertEquals(PEER.agentsAreKnown, false);
  assert(finish() > 5);
  assert(has("a0") && has("a1999"));
  assertEquals(PEER.agentsAreKnown, true);
});

Deno.test("what is read late is what was written last", () => {
  const { agents, has, finish } = setUp();
  agents.set("agents-00", list(0, 1_000));
  agents.set("agents-01", list(1_000, 1_100));
  agents.set("agents-01", list(1_050, 1_150));
  finish();
  assert(!has("a1000") && has("a1050") && has("a1149"));
  agents.set("agents-01", undefined);
  agents.set("agents-00", list(1, 1_000));
  finish();
  assert(!has("a1050") && !has("a0") && has("a1"));
});

Deno.test("a server that goes while its agents are read leaves none", () => {
  const { agents, has, finish } = setUp();
  agents.set("agents-00", list(0, 1_000));
  agents.set("agents-01", list(1_000, 2_000));
  agents.drop();
  finish();
  for (const name of ["a0", "a999", "a1000", "a1999"]) assert(!has(name), name);
});
