/**
 * Services that nodes announce, reached from other nodes through whole tunnels:
 * over ADS by proxies, and by dials of nodes, which the server authorizes.
 *
 * @module
 */

import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { TunnelDialError } from "../../client/dial_error.ts";
import { openDialer } from "../../client/tunnel_dialer.ts";
import { virtualAddressOf } from "../../services/discovery/generate/virtual_addresses.ts";
import { ConduitProbe } from "../support/memory/conduit_probe.ts";
import { announced, NodeRig } from "../support/rigs/node_rig.ts";
import { ask, ProxyRig } from "../support/rigs/proxy_rig.ts";
import {
  eventually,
  metricAt,
  portOf,
  Tunnel,
} from "../support/rigs/tunnel_harness.ts";

const KEY = "default/web";
/** Connections that an agent has to targets. */
const OPEN = "konnectivity_network_proxy_agent_open_endpoint_connections";

/** What a client of a port on loopback is answered; `reset` when it is. */
async function answerAt(port: number): Promise<string> {
  try {
    using conn = await Deno.connect({ hostname: "127.0.0.1", port });
    return await ask(conn, "hello");
  } catch (error) {
    if (error instanceof Deno.errors.ConnectionReset) return "reset";
    throw error;
  }
}

async function refusalOf(dial: Promise<unknown>): Promise<string> {
  const { message } = await assertRejects(() => dial, TunnelDialError);
  return message;
}

Deno.test("what a node announces is reached from another one's proxy, until it is lost", async () => {
  await using backends = new ProxyRig();
  await using rig = await NodeRig.discovering();
  const { log } = rig.tunnel;
  const proxy = await rig.proxy(await rig.joined("edge-2"));
  const edge = await rig.joined("edge-1");
  const services = [announced("web", backends.echo("edge-1: "))];
  const agent = await rig.link(edge, { services });
  const port = await proxy.served(KEY);
  assertEquals(await answerAt(port), "edge-1: hello");
  const isGone = proxy.log.next(/127\.0\.0\.1:\d+ unready, was ready/);
  agent.running.stop("the machine burns");
  await isGone;
  assertEquals(await answerAt(port), "reset");
  // It comes back, and at another port of its machine.
  const isBack = proxy.log.next(/^The catalog has changed: default\/web: \+/);
  await rig.link(edge, { services: [announced("web", backends.echo("2: "))] });
  await isBack;
  assertEquals(await answerAt(port), "2: hello");
  assertEquals(log.matching(/may not announce/), []);
});

Deno.test("one address on two nodes is two endpoints, told apart by their agents", async () => {
  await using backends = new ProxyRig();
  await using rig = await NodeRig.discovering();
  // Behind both agents it is the same port of the same address, and here even
  // of the same machine; only who carries it differs.
  const shared = backends.echo();
  for (const name of ["edge-1", "edge-2"]) {
    await rig.link(await rig.joined(name), {
      services: [announced("web", shared)],
    });
  }
  const dial = await rig.dialer(await rig.joined("edge-3"));
  const open = () =>
    Promise.all(
      rig.tunnel.agents.map(({ running }) =>
        metricAt(running.addresses.health, OPEN)
      ),
    );
  assertEquals(await open(), [0, 0]);
  const virtual = (value: string) =>
    virtualAddressOf({ agent: { key: "id", value }, address: "127.0.0.1" });
  const counts: number[][] = [];
  for (const name of ["edge-1", "edge-2", "edge-2"]) {
    const conduit = await dial(`[${virtual(name)}]:${shared}`);
    const probe = new ConduitProbe(conduit);
    probe.send("hello");
    await probe.received(5);
    counts.push(await open());
  }
  assertEquals(counts, [[1, 0], [1, 1], [1, 2]]);
});

Deno.test("a node reaches services of the catalog, and no more, unless a rule says so", async () => {
  await using backends = new ProxyRig();
  const policyFile = await Deno.makeTempFile({ suffix: ".json" });
  const policy = {
    dials: [{ node: "edge-3", nodes: ["edge-1"], allow: ["tcp:127.0.0.1:*"] }],
    discovery: [
      { node: "*", allow: ["*"] },
      { node: "edge-4", deny: ["default/db"] },
    ],
  };
  await Deno.writeTextFile(policyFile, JSON.stringify(policy));
  await using rig = await NodeRig.discovering({
    server: { authorization: { policyFile } },
  });
  const [web, db, other] = [backends.echo(), backends.echo(), backends.echo()];
  await rig.link(await rig.joined("edge-1"), {
    services: [announced("web", web), announced("db", db)],
  });
  const [two, three, four] = await Promise.all(
    ["edge-2", "edge-3", "edge-4"].map(async (name) =>
      await rig.dialer(await rig.joined(name))
    ),
  );
  const reaches = async (dial: typeof two, port: number, agent?: string) => {
    const conduit = await dial!(`127.0.0.1:${port}`, agent);
    const probe = new ConduitProbe(conduit);
    probe.send("hello");
    await probe.received(5);
    probe.finish();
    await probe.closed;
  };
  await reaches(two, web, "id=edge-1");
  await reaches(two, db, "id=edge-1");
  assertMatch(
    await refusalOf(two!(`127.0.0.1:${other}`, "id=edge-1")),
    /refused, no rule of the server allows it \(no service that edge-2 sees/,
  );
  // The agent serves every target of the default strategy; a node may not ask.
  assertMatch(
    await refusalOf(two!(`127.0.0.1:${web}`)),
    /no service that edge-2 sees has it/,
  );
  await reaches(three, other, "id=edge-1");
  await reaches(four, web, "id=edge-1");
  assertMatch(
    await refusalOf(four!(`127.0.0.1:${db}`, "id=edge-1")),
    /no service that edge-4 sees has it/,
  );
  await Deno.remove(policyFile);
});

Deno.test("bytes, half-closes and resets go from node to node as everywhere", async () => {
  await using rig = await NodeRig.discovering();
  const { target } = rig.tunnel;
  const port = portOf(target.address);
  await rig.link(await rig.joined("edge-1"), {
    services: [announced("web", port)],
  });
  const dial = await rig.dialer(await rig.joined("edge-2"));
  const open = async () => {
    const [conduit, far] = await Promise.all([
      dial(`127.0.0.1:${port}`, "id=edge-1"),
      target.next(),
    ]);
    return { near: new ConduitProbe(conduit), far };
  };
  const first = await open();
  first.far.send("the target speaks first");
  await first.near.received(23);
  first.near.send("all of it");
  first.near.finish();
  await first.far.ended;
  assertEquals(first.far.text, "all of it");
  first.far.send("and back");
  first.far.finish();
  assertEquals((await first.near.closed).kind, "clean");
  assertEquals(first.near.text, "the target speaks firstand back");
  const second = await open();
  second.far.reset("enough");
  assertEquals((await second.near.closed).kind, "reset");
  const third = await open();
  third.near.reset("enough");
  assertEquals((await third.far.closed).kind, "reset");
  const fourth = await open();
  assertEquals(await rig.tunnel.metric("tunnel_server_node_connections"), 1);
  rig.tunnel.agents[0]!.running.stop("the machine burns");
  assertEquals((await fourth.near.closed).kind, "lost");
});

Deno.test("who shows no certificate dials nobody through the agent port", async () => {
  await using rig = await NodeRig.discovering({
    agents: { allowAnonymous: true },
  });
  const node = await rig.joined("edge-1");
  await rig.link(node, { services: [announced("web", 1)] });
  const route = await rig.route(node);
  const { ca } = route.files;
  const dialer = openDialer({ ...route, files: { ca } });
  const target = { protocol: "tcp", address: "127.0.0.1:1" };
  assertMatch(
    await refusalOf(dialer.dial({ target, node: "id=edge-1" })),
    /it showed no certificate; use that of a node that joined/,
  );
  dialer.close();
});

Deno.test("what a node may not announce is said at both ends", async () => {
  const policyFile = await Deno.makeTempFile({ suffix: ".json" });
  const nodes = [{ name: "edge-*", services: ["shop/*"] }];
  await Deno.writeTextFile(policyFile, JSON.stringify({ nodes }));
  await using rig = await NodeRig.discovering({
    server: { authorization: { policyFile } },
  });
  const { log } = rig.tunnel;
  const isSaid = log.next(/^agent edge-1 may not announce default\/web:80: no/);
  const agent = await rig.link(await rig.joined("edge-1"), {
    services: [
      announced("web", 1),
      announced("meta", 1, { namespace: "shop", host: "169.254.169.254" }),
      announced("ok", 1, { namespace: "shop" }),
    ],
  });
  await isSaid;
  const reported = await agent.log.until(
    /^the server does not take default\/web/,
  );
  assertMatch(reported.message, /no rule of the server lets edge-1 announce/);
  const own = await agent.log.until(/^the server does not take shop\/meta:80/);
  assertMatch(own.message, /"169\.254\.169\.254" is not the agent's own/);
  assertEquals(agent.log.matching(/does not take/).length, 2);
  await Deno.remove(policyFile);
});

Deno.test("a server without a catalog says that it takes no services", async () => {
  await using tunnel = await Tunnel.open();
  const agent = await tunnel.link({ services: [announced("web", 1)] });
  const line = await agent.log.until(/^the server does not take default\/web/);
  assertMatch(line.message, /this server has no catalog; start it with/);
});

Deno.test("services that change while an agent runs change everywhere", async () => {
  await using backends = new ProxyRig();
  await using rig = await NodeRig.discovering();
  const proxy = await rig.proxy(await rig.joined("edge-2"));
  const edge = await rig.joined("edge-1");
  const [one, two] = [backends.echo("one: "), backends.echo("two: ")];
  let services = [announced("web", one)];
  let version = 0;
  const options = await rig.optionsOf(edge);
  const config = await rig.tunnel.file("0");
  const agent = rig.tunnel.startAgent({
    ...options,
    liveServices: () => services,
    config: {
      kind: "config",
      files: [config],
      reload: () => `version ${++version}`,
    },
  });
  await agent.log.until(/^linked to server$/);
  const port = await proxy.served(KEY);
  assertEquals(await answerAt(port), "one: hello");
  services = [announced("web", two)];
  const isOther = proxy.log.next(/^The catalog has changed: default\/web/);
  await Deno.writeTextFile(config, "1");
  agent.running.reload();
  await isOther;
  await eventually(
    "the other port answers",
    async () => await answerAt(port) === "two: hello",
  );
  services = [];
  const isGone = proxy.log.next(/^The catalog has changed: -default\/web/);
  await Deno.writeTextFile(config, "2");
  agent.running.reload();
  await isGone;
});
