import { assert, assertEquals } from "@std/assert";
import type { Affinity, Balance, Endpoint } from "../../catalog/model/model.ts";
import { type Target, targetKeyOf, targetsOf } from "../../catalog/snapshot.ts";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { forAll } from "../../../tests/support/memory/prng.ts";
import { target } from "../../../tests/support/peers/targets.ts";
import { AFFINITY_CLIENTS_MAX, AffinityTable } from "./strategies.ts";
import { Backend, EJECTION_FAILURES, EJECTION_MS } from "./backend.ts";
import { Balancer } from "./balancer.ts";
import type { Family } from "./families.ts";

interface Setting {
  readonly balance?: Balance;
  readonly affinity?: Affinity;
  readonly isShared?: boolean;
  readonly zone?: string;
  readonly node?: string;
  readonly lacking?: Family;
  readonly random?: () => number;
}

function balancerOf(targets: readonly Target[], setting: Setting = {}) {
  const timers = new FakeTimers();
  const { balance = "round-robin", affinity = { kind: "none" } } = setting;
  const { zone, node, lacking } = setting;
  const balancer = new Balancer({
    clock: timers,
    random: setting.random ?? (() => 0),
    families: { lacking },
    isShared: setting.isShared === true,
  });
  balancer.configure({
    balance,
    affinity,
    ...(zone && { zone }),
    ...(node && { node }),
  });
  balancer.update(targets);
  const pick = (client = "10.0.0.1") => balancer.pick(client)?.key;
  const picks = (count: number) => Array.from({ length: count }, () => pick());
  const backend = (key: string): Backend => {
    for (const one of balancer.backends) if (one.key === key) return one;
    throw new Error(`there is no ${key}`);
  };
  const fail = (key: string, times: number) => {
    for (let i = 0; i < times; i++) balancer.failed(backend(key), "refused");
  };
  return { balancer, timers, pick, picks, backend, fail };
}

const three = (about: Partial<Endpoint>[] = []) =>
  ["a:1", "b:1", "c:1"].map((key, index) => target(key, about[index]));

Deno.test("a backend that failed three times in a row is left out for ten seconds", () => {
  const { picks, fail, timers } = balancerOf(three());
  fail("a:1", EJECTION_FAILURES - 1);
  assertEquals(picks(3), ["a:1", "b:1", "c:1"]);
  fail("a:1", 1);
  assertEquals(picks(3), ["b:1", "c:1", "b:1"]);
  timers.advance(EJECTION_MS - 1);
  assert(!picks(4).includes("a:1"));
  timers.advance(1);
  assert(picks(3).includes("a:1"));
});

Deno.test("after that one failure is enough, and one success ends it", () => {
  const { picks, fail, timers, backend } = balancerOf(three());
  fail("a:1", EJECTION_FAILURES);
  timers.advance(EJECTION_MS);
  fail("a:1", 1);
  assert(!picks(6).includes("a:1"));
  timers.advance(EJECTION_MS);
  backend("a:1").succeeded();
  fail("a:1", EJECTION_FAILURES - 1);
  assert(picks(3).includes("a:1"));
});

Deno.test("a success ends an ejection before its time", () => {
  const { picks, fail, backend } = balancerOf(three());
  for (const key of ["a:1", "b:1", "c:1"]) fail(key, EJECTION_FAILURES);
  backend("b:1").succeeded();
  assertEquals(picks(2), ["b:1", "b:1"]);
});

Deno.test("when all are ejected none is", () => {
  const { picks, fail } = balancerOf(three());
  for (const key of ["a:1", "b:1", "c:1"]) fail(key, EJECTION_FAILURES);
  assertEquals(picks(4), ["a:1", "b:1", "c:1", "a:1"]);
});

Deno.test("who is ill is left out until all are", () => {
  const { picks, backend } = balancerOf(three());
  backend("a:1").health = "ill";
  backend("b:1").health = "ill";
  assertEquals(picks(2), ["c:1", "c:1"]);
  backend("c:1").health = "ill";
  assertEquals(new Set(picks(3)).size, 3);
});

Deno.test("each backend is offered to one client once", () => {
  const { balancer, fail } = balancerOf(three());
  fail("b:1", EJECTION_FAILURES);
  const tried = new Set<Backend>();
  const keys: string[] = [];
  for (;;) {
    const backend = balancer.pick("10.0.0.1", tried);
    if (backend === undefined) break;
    keys.push(backend.key);
    tried.add(backend);
  }
  assertEquals(keys, ["a:1", "c:1", "b:1"], "the ejected one comes last");
});

Deno.test("what was found of backends, and counts, survive an update", () => {
  const { balancer, picks, fail, backend } = balancerOf(three());
  fail("a:1", EJECTION_FAILURES);
  backend("b:1").opened();
  const before = backend("b:1");
  balancer.update([target("b:1", { weight: 5 }), ...three().slice(0, 1)]);
  assertEquals(backend("b:1"), before);
  assertEquals(backend("b:1").target.endpoint.weight, 5);
  assertEquals(picks(2), ["b:1", "b:1"]);
});

Deno.test("an update says which backends may not be used any more", () => {
  const { balancer } = balancerOf(three());
  const left = balancer.update([
    target("a:1", { state: "serving" }),
    target("c:1"),
  ]);
  assertEquals(left.map(({ key }) => key), ["a:1", "b:1"]);
  assertEquals(
    [...balancer.backends].map(({ isUsable }) => isUsable),
    [false, true],
  );
  assertEquals([...balancer.backends].map(({ key }) => key), ["a:1", "c:1"]);
  assertEquals(balancer.update([]).map(({ key }) => key), ["c:1"]);
});

Deno.test("who goes away is chosen only when nobody is ready", () => {
  const { balancer, picks } = balancerOf([
    target("a:1", { state: "serving" }),
    target("b:1"),
    target("c:1", { state: "terminating" }),
    target("d:1", { state: "unready" }),
  ]);
  assertEquals(picks(2), ["b:1", "b:1"]);
  balancer.update([
    target("a:1", { state: "serving" }),
    target("c:1", { state: "terminating" }),
  ]);
  assertEquals(picks(2), ["a:1", "a:1"]);
});

Deno.test("near endpoints come first, and far ones when those are out", () => {
  const targets = three([{ zone: "x" }, { zone: "y" }, {
    zone: "x",
    forZones: ["y"],
  }]);
  const { picks, fail } = balancerOf(targets, { zone: "y" });
  assertEquals(picks(3), ["b:1", "c:1", "b:1"], "hints count before zones");
  fail("b:1", EJECTION_FAILURES);
  fail("c:1", EJECTION_FAILURES);
  assertEquals(picks(2), ["a:1", "a:1"]);
});

Deno.test("endpoints of the node come before those of its zone", () => {
  const targets = three([
    { zone: "x", node: "n1" },
    { zone: "x", node: "n2" },
    { zone: "y", node: "n3" },
  ]);
  const { picks, fail } = balancerOf(targets, { zone: "x", node: "n2" });
  assertEquals(picks(2), ["b:1", "b:1"]);
  fail("b:1", EJECTION_FAILURES);
  assertEquals(picks(2), ["a:1", "a:1"]);
  fail("a:1", EJECTION_FAILURES);
  assertEquals(picks(2), ["c:1", "c:1"]);
  const elsewhere = balancerOf(targets, { zone: "x", node: "n9" });
  assertEquals(elsewhere.picks(2), ["a:1", "b:1"]);
});

Deno.test("of two families the one that this machine lacks is not tried", () => {
  const targets = ["10.0.0.1:1", "[fd00::1]:1", "[::1]:1"]
    .map((key) => target(key));
  const all = targets.map(targetKeyOf);
  assertEquals(balancerOf(targets).picks(3), all);
  const [v4, v6, near] = all;
  assertEquals(balancerOf(targets, { lacking: 6 }).picks(3), [v4, near, v4]);
  assertEquals(balancerOf(targets, { lacking: 4 }).picks(3), [v6, near, v6]);
  const { balancer } = balancerOf(targets, { lacking: 6 });
  assertEquals(
    [...balancer.backends].map((backend) => balancer.isBeyond(backend)),
    [false, true, false],
  );
  const { picks } = balancerOf(targets.slice(1, 2), { lacking: 6 });
  assertEquals(picks(1), [v6], "the only ones may be had all the same");
});

Deno.test("a zone where no endpoint is changes nothing", () => {
  const { picks } = balancerOf(three([{ zone: "x" }]), { zone: "z" });
  assertEquals(picks(3), ["a:1", "b:1", "c:1"]);
});

Deno.test("round robin may begin anywhere, and goes on when a list has another order", () => {
  const { balancer, picks } = balancerOf(three(), { random: () => 0.5 });
  assertEquals(picks(3), ["b:1", "c:1", "a:1"]);
  balancer.update(three().toReversed());
  assertEquals(picks(2), ["b:1", "c:1"]);
});

Deno.test("random takes what chance says", () => {
  const chances = [0.99, 0, 0.5, 0.34];
  const { picks } = balancerOf(three(), {
    balance: "random",
    random: () => chances.shift() ?? 0,
  });
  assertEquals(picks(4), ["c:1", "a:1", "b:1", "b:1"]);
});

Deno.test("weighted chooses as often as weights say, and spreads it", () => {
  const weights = [{ weight: 5 }, { weight: 1 }, { weight: 1 }];
  const { picks } = balancerOf(three(weights), { balance: "weighted" });
  assertEquals(picks(7).join(" "), "a:1 a:1 b:1 a:1 c:1 a:1 a:1");
});

Deno.test("weights hold among those that are in", () => {
  const weights = [{ weight: 5 }, { weight: 2 }, { weight: 1 }];
  const { picks, fail } = balancerOf(three(weights), { balance: "weighted" });
  fail("a:1", EJECTION_FAILURES);
  const seen = picks(30);
  assertEquals(seen.filter((key) => key === "b:1").length, 20);
  assertEquals(seen.filter((key) => key === "c:1").length, 10);
});

Deno.test("least connections takes the idlest for its weight, in turns", () => {
  const { pick, backend } = balancerOf(
    three([{}, { weight: 2 }, {}]),
    { balance: "least-connections" },
  );
  const open = (key: string | undefined) => backend(key!).opened();
  assertEquals([pick(), pick(), pick()], ["a:1", "b:1", "c:1"]);
  for (const key of ["a:1", "b:1", "c:1"]) open(key);
  assertEquals(pick(), "b:1");
  open("b:1");
  open("b:1");
  assertEquals(pick(), "c:1");
  backend("a:1").closed();
  assertEquals(pick(), "a:1");
});

Deno.test("the time to live of affinity begins anew with each visit", () => {
  const { pick, timers } = balancerOf(three(), {
    affinity: { kind: "client-ip", ttlMs: 1_000 },
  });
  assertEquals([pick("x"), pick("y")], ["a:1", "b:1"]);
  timers.advance(999);
  assertEquals(pick("x"), "a:1");
  timers.advance(999);
  assertEquals(pick("x"), "a:1");
  timers.advance(1_000);
  assertEquals(pick("x"), "c:1");
});

Deno.test("a later update changes the time to live, too", () => {
  const { balancer, pick, timers } = balancerOf(three(), {
    affinity: { kind: "client-ip", ttlMs: 1_000 },
  });
  assertEquals(pick("x"), "a:1");
  balancer.configure({
    balance: "round-robin",
    affinity: { kind: "client-ip", ttlMs: 5_000 },
  });
  timers.advance(4_999);
  assertEquals(pick("x"), "a:1");
});

Deno.test("a client leaves a backend that is ejected, and stays away", () => {
  const { pick, fail, timers } = balancerOf(three(), {
    affinity: { kind: "client-ip", ttlMs: 100_000 },
  });
  assertEquals(pick("x"), "a:1");
  fail("a:1", EJECTION_FAILURES);
  assertEquals(pick("x"), "b:1");
  timers.advance(EJECTION_MS);
  assertEquals(pick("x"), "b:1");
});

Deno.test("affinity goes with its endpoint, and with its policy", () => {
  const affinity = { kind: "client-ip", ttlMs: 1_000 } as const;
  const { balancer, pick } = balancerOf(three(), { affinity });
  assertEquals([pick("x"), pick("y")], ["a:1", "b:1"]);
  balancer.update(three().slice(1));
  assertEquals(balancer.affinityClients, 1);
  assertEquals([pick("y"), pick("x")], ["b:1", "b:1"]);
  balancer.configure({ balance: "round-robin", affinity: { kind: "none" } });
  assertEquals(balancer.affinityClients, 0);
  assertEquals([pick("y"), pick("y")], ["c:1", "b:1"]);
});

Deno.test("who retries takes the next one, whatever its affinity is by now", () => {
  const { balancer, pick, backend } = balancerOf(three(), {
    affinity: { kind: "client-ip", ttlMs: 1_000 },
  });
  assertEquals([pick("x"), pick("y")], ["a:1", "b:1"]);
  const tried = new Set([backend("b:1")]);
  assertEquals(balancer.pick("x", tried)?.key, "c:1");
  assertEquals(pick("x"), "c:1");
});

Deno.test("the table of clients is bounded, and forgets the longest unseen", () => {
  const table = new AffinityTable(new FakeTimers(), 1_000, 2);
  const backend = new Backend(target("a:1"));
  table.set("x", backend);
  table.set("y", backend);
  assertEquals(table.visit("x"), backend);
  table.set("z", backend);
  assertEquals(table.size, 2);
  assertEquals(table.visit("y"), undefined);
  assertEquals(table.visit("x"), backend);
  assert(AFFINITY_CLIENTS_MAX < 100_000);
});

Deno.test("another way to balance keeps affinity and what was found of backends", () => {
  const affinity = { kind: "client-ip", ttlMs: 1_000 } as const;
  const { balancer, pick, fail } = balancerOf(three(), { affinity });
  assertEquals(pick("x"), "a:1");
  fail("c:1", EJECTION_FAILURES);
  balancer.configure({ balance: "weighted", affinity });
  assertEquals(pick("x"), "a:1");
  assert(pick("y") !== "c:1");
});

Deno.test("whatever happens, somebody is picked as long as anybody is usable", async () => {
  const balances = [
    "round-robin",
    "random",
    "least-connections",
    "weighted",
  ] as const;
  await forAll(100, (prng) => {
    const { balancer, pick, fail, timers } = balancerOf([], {
      balance: balances[prng.below(4)]!,
      ...(prng.below(2) === 0 ? { zone: "x" } : {}),
      random: () => prng.below(1_000) / 1_000,
    });
    let usable: string[] = [];
    for (let step = 0; step < 40; step++) {
      const targets = Array.from(
        { length: prng.below(5) },
        (_, index) =>
          target(`e${index}:${1 + prng.below(2)}`, {
            zone: prng.below(2) === 0 ? "x" : "y",
            weight: 1 + prng.below(9),
            state: prng.below(3) === 0 ? "unready" : "ready",
          }),
      );
      balancer.update(targets);
      usable = targets.filter(({ endpoint }) => endpoint.state === "ready")
        .map(({ address, port }) => `${address}:${port}`);
      for (let i = 0; i < 5; i++) {
        const key = pick(`c${prng.below(3)}`);
        if (usable.length === 0) assertEquals(key, undefined);
        else assert(usable.includes(key!), `${key} of ${usable}`);
        if (key !== undefined && prng.below(2) === 0) fail(key, 1);
      }
      timers.advance(prng.below(5_000));
    }
  });
});

Deno.test("one address behind two agents is two backends", () => {
  const behind = (value: string): Partial<Endpoint> => ({
    via: { kind: "agent", agent: { key: "id", value } },
  });
  const endpoints = [
    target("127.0.0.1:80", behind("edge-1")).endpoint,
    target("127.0.0.1:80", behind("edge-2")).endpoint,
  ];
  const service = "default/web";
  const snapshot = {
    version: 1,
    services: new Map(),
    endpoints: new Map([[service, endpoints]]),
  };
  const { picks } = balancerOf(targetsOf(snapshot, service, ""));
  assertEquals(picks(3), [
    "127.0.0.1:80@id=edge-1",
    "127.0.0.1:80@id=edge-2",
    "127.0.0.1:80@id=edge-1",
  ]);
});

const SHARED: Setting = {
  affinity: { kind: "client-ip", ttlMs: 1_000 },
  isShared: true,
};

Deno.test("processes that share a port choose the same for a client", () => {
  const [one, other] = [
    balancerOf(three(), SHARED),
    balancerOf(three(), SHARED),
  ];
  one.pick("10.9.9.9");
  const clients = Array.from({ length: 300 }, (_, at) => `10.0.0.${at}`);
  const chosen = clients.map((client) => one.pick(client));
  assertEquals(clients.map((client) => other.pick(client)), chosen);
  for (const key of ["a:1", "b:1", "c:1"]) {
    const share = chosen.filter((one) => one === key).length;
    assert(share > 60 && share < 140, `${key} has ${share} of 300`);
  }
});

Deno.test("where ports are shared, an endpoint that goes moves its own clients alone", () => {
  const { balancer, pick } = balancerOf(three(), SHARED);
  const clients = Array.from({ length: 100 }, (_, at) => `10.0.0.${at}`);
  const before = clients.map((client) => pick(client));
  balancer.update(three().slice(1));
  for (const [at, client] of clients.entries()) {
    const now = pick(client);
    if (before[at] === "a:1") assert(now !== "a:1");
    else assertEquals(now, before[at]);
  }
});

Deno.test("another process goes on with the clients of this one, and with whose turn it is", () => {
  const setting = { affinity: { kind: "client-ip", ttlMs: 1_000 } } as const;
  const old = balancerOf(three(), setting);
  const clients = Array.from({ length: 100 }, (_, at) => `10.0.0.${at}`);
  const places = clients.map((client) => old.pick(client));
  old.timers.advance(600);
  const young = balancerOf(three(), { ...setting, random: () => 0.99 });
  // As it comes over a socket.
  for (const part of old.balancer.memory()) {
    assert(JSON.stringify(part).length < 8_000);
    young.balancer.recall(JSON.parse(JSON.stringify(part)));
  }
  assertEquals(young.balancer.affinityClients, 100);
  assertEquals(young.pick("10.9.9.9"), old.pick("10.9.9.9"));
  assertEquals(clients.slice(0, 50).map(young.pick), places.slice(0, 50));
  // Their time goes on, too.
  young.timers.advance(401);
  assertEquals(young.balancer.pick("10.0.0.99")?.key === undefined, false);
  assertEquals(young.balancer.affinityClients, 52);
});

Deno.test("what another process says of clients is believed of what is known here alone", () => {
  const { balancer, pick } = balancerOf(three(), {
    affinity: { kind: "client-ip", ttlMs: 1_000 },
  });
  const bad = [
    ["10.0.0.1", "elsewhere:1", 0],
    ["10.0.0.1", "__proto__", 0],
    ["x".repeat(65), "b:1", 0],
    ["10.0.0.1", "b:1", -1],
    ["10.0.0.1", "b:1", null],
    ["10.0.0.1", "b:1", "0"],
    [1, "b:1", 0],
    null,
    "b:1",
  ];
  for (const clients of [bad, "all", undefined, {}]) {
    balancer.recall({ next: "constructor", clients });
  }
  assertEquals([balancer.affinityClients, pick("10.0.0.1")], [0, "a:1"]);
  const many = Array.from({ length: AFFINITY_CLIENTS_MAX + 9 }, (_, at) => [
    `c${at}`,
    "b:1",
    0,
  ]);
  balancer.recall({ clients: many });
  assertEquals(balancer.affinityClients, AFFINITY_CLIENTS_MAX);
});
