import { assertEquals } from "@std/assert";
import { Catalog } from "../../../services/catalog/catalog.ts";
import type {
  AnnouncedService,
  ServiceRefusal,
} from "../../../proto/link/link_messages.ts";
import { settled } from "../../../tests/support/memory/conduit_probe.ts";
import {
  FakeLink,
  identifiers,
} from "../../../tests/support/memory/fake_link.ts";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../../tests/support/watch/recorded_log.ts";
import {
  endpointsOf,
  ScriptedSource,
  serviceOf,
} from "../../../tests/support/watch/scripted_source.ts";
import { authorizeAnnouncement } from "./announcement.ts";
import type { MemberMemory, RememberedAgent } from "./member_memory.ts";
import type { PeerOffers } from "./shared_offers.ts";
import {
  AGENT_KEEP_MS,
  ANNOUNCE_INTERVAL_MS,
  FORGET_MS,
  KEEP_AGAIN_MS,
  KNOWN_RECONNECT_WAIT_MS,
  LOST_AGENTS_MAX,
  MembershipSource,
  RECONNECT_WAIT_MS,
  REPORT_INTERVAL_MS,
} from "./membership_source.ts";

/** A link of an agent that announces. */
class AnnouncingLink extends FakeLink {
  readonly refusals: string[] = [];

  constructor(agentId: string, public services: readonly AnnouncedService[]) {
    super(agentId);
  }

  refuseServices(refused: readonly ServiceRefusal[]): void {
    this.refusals.push(...refused.map(({ service }) => service));
  }
}

/** `web` on 127.0.0.1:8080, or as is said. */
function offer(change: Partial<AnnouncedService> = {}): AnnouncedService {
  return {
    name: "web",
    namespace: "",
    port: 80,
    protocol: "tcp",
    appProtocol: "",
    host: "127.0.0.1",
    targetPort: 8080,
    ...change,
  };
}

/** What is kept, in memory. */
class KeptMembers implements MemberMemory {
  saves = 0;

  constructor(public agents: readonly RememberedAgent[] = []) {}

  load(): Promise<readonly RememberedAgent[]> {
    return Promise.resolve(this.agents);
  }

  save(agents: readonly RememberedAgent[]): Promise<void> {
    this.saves++;
    this.agents = agents;
    return Promise.resolve();
  }
}

/** Other servers, played by the test. */
class ScriptedPeers implements PeerOffers {
  current: ReadonlyMap<string, RememberedAgent> = new Map();
  #changed: () => void = () => {};

  start(changed: () => void): void {
    this.#changed = changed;
    changed();
  }

  stop(): Promise<void> {
    this.#changed = () => {};
    return Promise.resolve();
  }

  say(...agents: readonly RememberedAgent[]): void {
    this.current = new Map(agents.map((agent) => [agent.id, agent]));
    this.#changed();
  }
}

/** `edge-1` as another server has it. */
function elsewhere(
  state: RememberedAgent["state"],
  { port = 9090, seenMs = 0, id = "edge-1" } = {},
): RememberedAgent {
  const accepted = {
    ...{ service: "default/web", namespace: "default", name: "web" },
    ...{ port: 80, protocol: "tcp" as const, appProtocol: "" },
    ...{ address: "127.0.0.1", targetPort: port },
  };
  return { id, node: id, offers: [accepted], state, seenMs };
}

function setUp(settleMs = 0, memory?: MemberMemory, peers?: PeerOffers) {
  const timers = new FakeTimers();
  const log = new RecordedLog();
  let denied = "";
  const mayOffer = (_node: string, service: string) => service !== denied;
  const source = new MembershipSource({
    log,
    timers,
    settleMs,
    ...(memory === undefined ? {} : { memory }),
    ...(peers === undefined ? {} : { peers }),
    now: () => timers.now(),
    mayOffer,
    authorize: (peer, services) =>
      authorizeAnnouncement(peer, services, {
        letsAnonymous: false,
        policy: { grantsOf: () => identifiers(), mayOffer },
      }),
  });
  const first = new ScriptedSource("first");
  const catalog = new Catalog({
    sources: [first, source],
    log: new RecordedLog(),
    timers,
    random: () => 0,
  });
  catalog.start();
  /** Each endpoint as `agent address:port state`, of a service. */
  const endpoints = (service = "default/web") =>
    catalog.snapshot.endpoints.get(service)?.map((
      { via, address, ports, state },
    ) =>
      `${
        via.kind === "agent" ? `${via.agent?.key}=${via.agent?.value}` : "-"
      } ` +
      `${address}:${ports.map(({ port }) => port).join()} ${state}`
    );
  const ports = (service = "default/web") =>
    catalog.snapshot.services.get(service)?.ports.map((
      { name, port, protocol, appProtocol },
    ) => [name, port, protocol, appProtocol ?? ""].join(" "));
  const link = (agentId: string, ...services: AnnouncedService[]) => {
    const link = new AnnouncingLink(agentId, services);
    source.linked(link);
    timers.advance(REPORT_INTERVAL_MS);
    return link;
  };
  const say = (link: AnnouncingLink, ...services: AnnouncedService[]) => {
    link.services = services;
    changed(link);
  };
  const changed = (link: AnnouncingLink) => {
    source.changed(link);
    timers.advance(REPORT_INTERVAL_MS);
  };
  const unlink = (link: AnnouncingLink) => {
    source.unlinked(link);
    timers.advance(REPORT_INTERVAL_MS);
  };
  const deny = (service: string) => {
    denied = service;
    source.reconsider();
    timers.advance(REPORT_INTERVAL_MS);
  };
  return {
    ...{ timers, log, source, first, catalog },
    ...{ endpoints, ports, link, say, changed, unlink, deny },
  };
}

Deno.test("agents that come at one moment are one change, or two", () => {
  const { catalog, source, timers } = setUp();
  const versions = () => catalog.snapshot.version;
  for (let index = 0; index < 1_000; index++) {
    source.linked(new AnnouncingLink(`a${index}`, [offer()]));
  }
  assertEquals(versions(), 1);
  timers.advance(REPORT_INTERVAL_MS);
  assertEquals(versions(), 2);
  const { endpoints } = catalog.snapshot;
  assertEquals(endpoints.get("default/web")!.length, 1_000);
});

Deno.test("agents that announce one service are its endpoints, in one order", () => {
  const { endpoints, ports, link } = setUp();
  link("edge-2", offer({ appProtocol: "grpc" }), offer({ targetPort: 9090 }));
  link("edge-1", offer(), offer({ port: 53, protocol: "udp" }));
  assertEquals(ports(), ["udp-53 53 udp ", "tcp-80 80 tcp grpc"]);
  assertEquals(endpoints(), [
    "id=edge-1 127.0.0.1:8080 ready",
    "id=edge-1 127.0.0.1:8080 ready",
    "id=edge-2 127.0.0.1:8080 ready",
    "id=edge-2 127.0.0.1:9090 ready",
  ]);
});

Deno.test("an agent is unready with its last link, not before, and ready with the next", () => {
  const { endpoints, unlink, link } = setUp();
  const one = link("edge-1", offer());
  const other = link("edge-1", offer());
  unlink(one);
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:8080 ready"]);
  unlink(other);
  unlink(other);
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:8080 unready"]);
  link("edge-1", offer());
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:8080 ready"]);
});

Deno.test("an agent that is gone is forgotten after ten minutes, unless it came back", () => {
  const { endpoints, ports, source, timers, link, unlink } = setUp();
  unlink(link("edge-1", offer()));
  timers.advance(FORGET_MS - 1);
  const back = link("edge-1", offer());
  timers.advance(FORGET_MS);
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:8080 ready"]);
  unlink(back);
  timers.advance(FORGET_MS - REPORT_INTERVAL_MS - 1);
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:8080 unready"]);
  timers.advance(1);
  assertEquals([endpoints(), ports()], [undefined, undefined]);
  assertEquals(source.agents, 0);
});

Deno.test("an agent whose links all drain is used while nobody else is ready", () => {
  const { endpoints, changed, link } = setUp();
  const one = link("edge-1", offer());
  const other = link("edge-1", offer());
  one.isDraining = true;
  changed(one);
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:8080 ready"]);
  other.isDraining = true;
  changed(other);
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:8080 serving"]);
});

Deno.test("what was announced last counts, and is read so often at most", () => {
  const { endpoints, ports, source, timers, link, say } = setUp();
  const one = link("edge-1", offer());
  timers.advance(ANNOUNCE_INTERVAL_MS);
  say(one, offer({ targetPort: 1 }));
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:1 ready"]);
  for (let port = 2; port < 100; port++) {
    one.services = [offer({ targetPort: port })];
    source.changed(one);
  }
  timers.advance(REPORT_INTERVAL_MS);
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:1 ready"]);
  timers.advance(ANNOUNCE_INTERVAL_MS);
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:99 ready"]);
  timers.advance(ANNOUNCE_INTERVAL_MS);
  say(one, offer({ name: "db", port: 5432 }));
  assertEquals(endpoints(), undefined);
  assertEquals(ports("default/db"), [" 5432 tcp "]);
});

Deno.test("an agent that comes back and announces nothing offers nothing", () => {
  const { endpoints, source, timers, link, unlink } = setUp();
  unlink(link("edge-1", offer()));
  timers.advance(ANNOUNCE_INTERVAL_MS);
  link("edge-1");
  assertEquals([endpoints(), source.agents], [undefined, 0]);
});

Deno.test("refusals are sent to the agent each time, and logged once", () => {
  const { endpoints, log, link } = setUp();
  const bad = offer({ name: "meta", host: "169.254.169.254" });
  const links = [link("edge-1", offer(), bad)];
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:8080 ready"]);
  assertEquals(endpoints("default/meta"), undefined);
  links.push(link("edge-1", offer(), bad));
  assertEquals(links[0]!.refusals, ["default/meta:80"]);
  const lines = log.take();
  assertEquals(lines.length, 1, lines.join("\n"));
  assertEquals(
    lines[0]!.startsWith(
      "warn: agent edge-1 may not announce default/meta:80: " +
        '"169.254.169.254" is not the agent\'s own',
    ),
    true,
  );
});

Deno.test("another policy takes away what it does not allow, and gives it back", () => {
  const { endpoints, link, deny } = setUp();
  const one = link("edge-1", offer());
  deny("default/web");
  assertEquals([endpoints(), one.refusals], [undefined, ["default/web:80"]]);
  deny("");
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:8080 ready"]);
});

Deno.test("a service that another source has is that source's, whoever announces it", () => {
  const { first, endpoints, ports, link } = setUp();
  first.sink.set({
    services: [serviceOf("web", 443)],
    endpoints: [endpointsOf("web", "10.0.0.1:443")],
  });
  link("edge-1", offer());
  assertEquals(ports(), [" 443 tcp "]);
  assertEquals(endpoints(), ["- 10.0.0.1:443 ready"]);
});

Deno.test("agents have time to come back before their services are removed", () => {
  const { catalog, first, timers, link } = setUp(RECONNECT_WAIT_MS);
  first.sink.synced();
  timers.advance(RECONNECT_WAIT_MS - REPORT_INTERVAL_MS - 1);
  link("edge-1", offer());
  assertEquals(catalog.isSynced, false);
  timers.advance(1);
  assertEquals(catalog.isSynced, true);
});

Deno.test("so many agents are remembered, and who is gone for longest goes first", () => {
  const { source, catalog, timers } = setUp();
  for (let index = 0; index <= LOST_AGENTS_MAX; index++) {
    const services = [offer({ name: `s${index}` })];
    const link = new AnnouncingLink(`a${index}`, services);
    source.linked(link);
    source.unlinked(link);
  }
  timers.advance(REPORT_INTERVAL_MS);
  assertEquals(source.agents, LOST_AGENTS_MAX);
  assertEquals(catalog.snapshot.services.has("default/s0"), false);
  assertEquals(catalog.snapshot.services.has("default/s1"), true);
});

Deno.test("nothing is said after the source was stopped", async () => {
  const { catalog, timers, link, endpoints, say } = setUp();
  const one = link("edge-1", offer());
  say(one, offer({ targetPort: 1 }));
  await catalog.stop();
  timers.advance(FORGET_MS);
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:8080 ready"]);
  assertEquals(timers.pendingCount, 0);
});

/** What a server kept to which these agents were linked. */
async function keptBy(...agents: readonly string[]): Promise<KeptMembers> {
  const memory = new KeptMembers();
  const before = setUp(RECONNECT_WAIT_MS, memory);
  for (const agent of agents) before.link(agent, offer());
  await before.source.stop();
  return memory;
}

Deno.test("a server that starts again waits for those it knew, and no longer than for them", async () => {
  const memory = await keptBy("edge-1", "edge-2");
  assertEquals(memory.agents.map(({ id }) => id), ["edge-1", "edge-2"]);
  const { catalog, link, timers, endpoints, first } = setUp(
    RECONNECT_WAIT_MS,
    memory,
  );
  first.sink.synced();
  await settled();
  link("edge-1", offer());
  timers.advance(RECONNECT_WAIT_MS);
  assertEquals(catalog.isSynced, false);
  link("edge-2", offer());
  assertEquals(catalog.isSynced, true);
  assertEquals(endpoints(), [
    "id=edge-1 127.0.0.1:8080 ready",
    "id=edge-2 127.0.0.1:8080 ready",
  ]);
});

Deno.test("who does not come back is there as one that is lost, for the rest of its time", async () => {
  const memory = await keptBy("edge-1");
  const { catalog, timers, endpoints, first } = setUp(
    RECONNECT_WAIT_MS,
    memory,
  );
  first.sink.synced();
  await settled();
  timers.advance(KNOWN_RECONNECT_WAIT_MS - 1);
  assertEquals(catalog.isSynced, false);
  timers.advance(1);
  assertEquals(catalog.isSynced, true);
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:8080 unready"]);
  timers.advance(FORGET_MS);
  assertEquals(endpoints(), undefined);
});

Deno.test("what was long ago, or may not be offered any more, is not recalled", async () => {
  const memory = await keptBy("edge-1");
  const old = memory.agents.map((agent) => ({ ...agent, seenMs: -FORGET_MS }));
  for (const kept of [memory, new KeptMembers(old)]) {
    const { catalog, deny, timers, endpoints, first } = setUp(
      RECONNECT_WAIT_MS,
      kept,
    );
    first.sink.synced();
    if (kept === memory) deny("default/web");
    await settled();
    timers.advance(RECONNECT_WAIT_MS);
    assertEquals([catalog.isSynced, endpoints()], [true, undefined]);
  }
  const { deny, timers, endpoints } = setUp(RECONNECT_WAIT_MS, memory);
  await settled();
  deny("default/web");
  timers.advance(KNOWN_RECONNECT_WAIT_MS);
  assertEquals(endpoints(), undefined);
});

Deno.test("what agents announce is kept soon, once for many, and now and then", async () => {
  const memory = new KeptMembers();
  const { link, timers } = setUp(RECONNECT_WAIT_MS, memory);
  await settled();
  for (let index = 0; index < 100; index++) link(`a${index}`, offer());
  await timers.advance(AGENT_KEEP_MS);
  assertEquals([memory.saves, memory.agents.length], [1, 100]);
  const before = memory.agents[0]!.seenMs;
  await timers.advance(KEEP_AGAIN_MS);
  assertEquals(memory.saves, 2);
  assertEquals(memory.agents[0]!.seenMs - before, KEEP_AGAIN_MS);
});

Deno.test("who is back before it is recalled need not be waited for", async () => {
  const memory = await keptBy("edge-1");
  const { catalog, link, first } = setUp(RECONNECT_WAIT_MS, memory);
  first.sink.synced();
  link("edge-1", offer());
  await settled();
  assertEquals(catalog.isSynced, true);
});

Deno.test("an agent that is linked to another server only is served as that one says", () => {
  const peers = new ScriptedPeers();
  const { endpoints, timers, deny } = setUp(0, undefined, peers);
  peers.say(elsewhere("ready"));
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:9090 ready"]);
  timers.advance(REPORT_INTERVAL_MS);
  peers.say(elsewhere("serving", { port: 9091 }));
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:9091 serving"]);
  timers.advance(REPORT_INTERVAL_MS);
  deny("default/web");
  assertEquals(endpoints(), undefined);
  timers.advance(REPORT_INTERVAL_MS);
  deny("");
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:9091 serving"]);
  timers.advance(REPORT_INTERVAL_MS);
  // It announces it no more.
  peers.say();
  assertEquals(endpoints(), undefined);
});

Deno.test("an agent with a link here counts once, and as that link says", () => {
  const peers = new ScriptedPeers();
  const { endpoints, source, timers, link, unlink } = setUp(
    0,
    undefined,
    peers,
  );
  const one = link("edge-1", offer());
  peers.say(elsewhere("ready"));
  timers.advance(REPORT_INTERVAL_MS);
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:8080 ready"]);
  assertEquals(source.agents, 1);
  unlink(one);
  timers.advance(REPORT_INTERVAL_MS);
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:9090 ready"]);
  timers.advance(ANNOUNCE_INTERVAL_MS);
  link("edge-1", offer());
  timers.advance(REPORT_INTERVAL_MS);
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:8080 ready"]);
});

Deno.test("agents of a server that is gone stay for as long as those of our own", () => {
  const peers = new ScriptedPeers();
  const { endpoints, timers } = setUp(0, undefined, peers);
  peers.say(elsewhere("ready"));
  const seenMs = timers.now() + 50_000;
  timers.advance(60_000);
  peers.say(elsewhere("unready", { seenMs }));
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:9090 unready"]);
  timers.advance(FORGET_MS - 10_000 - 1);
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:9090 unready"]);
  timers.advance(1);
  assertEquals(endpoints(), undefined);
  peers.say(elsewhere("unready", { seenMs }));
  timers.advance(REPORT_INTERVAL_MS);
  assertEquals(endpoints(), undefined);
});

Deno.test("a server saves what it has seen itself, and whether it has a link", async () => {
  const peers = new ScriptedPeers();
  const memory = new KeptMembers();
  const { source, link, unlink } = setUp(RECONNECT_WAIT_MS, memory, peers);
  await settled();
  peers.say(elsewhere("ready", { id: "far" }));
  link("near", offer());
  unlink(link("lost", offer()));
  await source.stop();
  assertEquals(
    memory.agents.map(({ id, state }) => [id, state]),
    [["near", "ready"], ["lost", "unready"]],
  );
});

Deno.test("agents of other servers are heard of when those of our own were recalled", async () => {
  const memory = await keptBy("edge-1");
  const peers = new ScriptedPeers();
  peers.say(elsewhere("ready"));
  const { catalog, endpoints, first, timers } = setUp(
    RECONNECT_WAIT_MS,
    memory,
    peers,
  );
  first.sink.synced();
  await settled();
  // It is expected here as well, for as long as ever.
  timers.advance(KNOWN_RECONNECT_WAIT_MS - 1);
  assertEquals(catalog.isSynced, false);
  timers.advance(1);
  assertEquals(endpoints(), ["id=edge-1 127.0.0.1:9090 ready"]);
});
