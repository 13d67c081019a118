import {
  assert,
  assertEquals,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { forAll, type Prng } from "../../tests/support/memory/prng.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import {
  endpointOf,
  endpointsOf,
  ScriptedSource,
  serviceOf,
} from "../../tests/support/watch/scripted_source.ts";
import { Catalog } from "./catalog.ts";
import { RECONCILE_MS_MAX, RECONCILE_MS_MIN } from "./source_input.ts";
import type { Diff } from "./diff.ts";
import type { Endpoint, Service } from "./model/model.ts";
import { type Snapshot, targetsOf, usableTargets } from "./snapshot.ts";

function open(...names: readonly string[]) {
  const sources = names.map((name) => new ScriptedSource(name));
  const log = new RecordedLog();
  const timers = new FakeTimers();
  const options = { sources, log, timers, random: () => 0.5 };
  const catalog = new Catalog(options);
  catalog.start();
  return {
    sources,
    sinks: sources.map(({ sink }) => sink),
    log,
    timers,
    catalog,
  };
}

Deno.test("what stays as it was stays the same object", () => {
  const { sinks: [sink], catalog } = open("file");
  const all = () => ({
    services: [serviceOf("a"), serviceOf("b")],
    endpoints: [endpointsOf("a", "10.0.0.1:1", "10.0.0.2:1")],
  });
  sink!.set(all());
  const before = catalog.snapshot;
  sink!.set(all());
  assert(catalog.snapshot === before);
  sink!.set({
    services: [serviceOf("a"), serviceOf("b", 81)],
    endpoints: [endpointsOf("a", "10.0.0.2:1", "10.0.0.3:1")],
  });
  const after = catalog.snapshot;
  assertEquals(after.version, before.version + 1);
  const [a, b] = ["default/a", "default/b"];
  assert(after.services.get(a!) === before.services.get(a!));
  assert(after.services.get(b!) !== before.services.get(b!));
  assert(after.endpoints.get(a!)![0] === before.endpoints.get(a!)![1]);
  assert(Object.isFrozen(after.services.get(a!)!.ports[0]));
});

Deno.test("changes that belong together are one", () => {
  const { sinks: [sink], catalog } = open("etcd");
  const seen: Snapshot[] = [];
  catalog.follow((snapshot) => void seen.push(snapshot));
  sink!.add({ services: [serviceOf("a")] });
  sink!.change({
    services: new Map([["default/a", undefined], [
      "default/b",
      serviceOf("b"),
    ]]),
    endpoints: new Map([["default/b", [endpointOf("10.0.0.1:80")]]]),
  });
  assertEquals(seen.map(({ services }) => [...services.keys()]), [
    ["default/a"],
    ["default/b"],
  ]);
  assertEquals(seen.map(({ endpoints }) => endpoints.size), [0, 1]);
});

Deno.test("who follows late is handed what is there, and who left nothing", () => {
  const { sinks: [sink], catalog } = open("file");
  sink!.set({ services: [serviceOf("a")] });
  const seen: Diff[] = [];
  const leave = catalog.follow((_, diff) => void seen.push(diff));
  assertEquals(seen.map(({ services }) => services.added.length), [1]);
  leave();
  sink!.set({ services: [] });
  assertEquals(seen.length, 1);
});

Deno.test("a follower that makes a source speak does not break the order", () => {
  const { sinks: [sink], catalog } = open("file");
  let depth = 0;
  catalog.follow((snapshot) => {
    assertEquals(++depth, 1, "it is told while it is being told");
    if (snapshot.version === 1) sink!.add({ services: [serviceOf("b")] });
    depth--;
  });
  const versions: number[] = [];
  catalog.follow((snapshot) => void versions.push(snapshot.version));
  sink!.add({ services: [serviceOf("a")] });
  assertEquals(versions, [1, 2]);
  assertEquals(catalog.snapshot.version, 2);
});

Deno.test("a catalog is synced when all of its sources are", async () => {
  const { sinks: [file, etcd], catalog } = open("file", "etcd");
  file!.synced();
  assertEquals(catalog.isSynced, false);
  etcd!.synced();
  assertEquals(catalog.isSynced, true);
  await catalog.whenSynced();
  const empty = open();
  await empty.catalog.whenSynced();
});

Deno.test("a source that is away keeps what it said, and says so once", () => {
  const { sinks: [sink], catalog, log } = open("etcd");
  sink!.set({ services: [serviceOf("a")] });
  sink!.synced();
  sink!.failed("Cannot reach etcd: refused", 200);
  sink!.failed("Cannot reach etcd: refused", 400);
  assertEquals(catalog.snapshot.services.size, 1);
  const [status] = catalog.status;
  assertEquals([status!.problem, status!.failures], [
    "Cannot reach etcd: refused",
    2,
  ]);
  assertEquals(log.matching(/stays in use/).length, 1);
  sink!.synced();
  assertEquals(catalog.status[0]!.problem, undefined);
  assertEquals(log.matching(/followed again/).length, 1);
});

Deno.test("an entry that is wrong is refused alone, and its last good one stays", () => {
  const { sinks: [sink], catalog, log } = open("etcd");
  sink!.set({ services: [serviceOf("a", 80)] });
  sink!.set({ services: [serviceOf("a", 70_000), serviceOf("b", 81)] });
  const ports = [...catalog.snapshot.services.values()]
    .map(({ ports: [first] }) => first!.port);
  assertEquals(ports, [80, 81]);
  assertEquals(catalog.status[0]!.refused, 1);
  const [line] = log.matching(/Cannot use an entry/);
  assertStringIncludes(line!.message, 'default/a: port "" is 70000');
});

Deno.test("many refusals are few lines", () => {
  const { sinks: [sink], log } = open("etcd");
  sink!.set({
    services: Array.from({ length: 50 }, (_, i) => serviceOf(`s${i}`, 0)),
  });
  assertEquals(log.matching(/Cannot use an entry/).length, 5);
  assertEquals(log.matching(/Cannot use 45 more/).length, 1);
});

Deno.test("drift that is repaired is counted and named", () => {
  const { sinks: [sink], catalog, log } = open("kubernetes");
  const part = { services: [serviceOf("a")] };
  sink!.set(part);
  sink!.repair(part);
  assertEquals(catalog.status[0]!.driftRepaired, 0);
  sink!.repair({ services: [serviceOf("a", 81), serviceOf("b")] });
  assertEquals(catalog.status[0]!.driftRepaired, 2);
  const [line] = log.matching(/Had missed/);
  assertStringIncludes(line!.message, "default/a, default/b");
});

Deno.test("each change is one line in the log", () => {
  const { sinks: [sink], log } = open("file");
  sink!.set({
    services: [serviceOf("a")],
    endpoints: [endpointsOf("a", "10.0.0.1:80")],
  });
  sink!.add({ services: [serviceOf("a", 81)] });
  assertEquals(log.matching(/has changed/).map(({ message }) => message), [
    "The catalog has changed: +default/a; default/a: +10.0.0.1:80",
    "The catalog has changed: default/a: ports 81/tcp, was 80/tcp",
  ]);
});

Deno.test("everything is read again from time to time, until the end", async () => {
  const { sources: [source], timers, catalog } = open("file");
  const delayMs = (RECONCILE_MS_MIN + RECONCILE_MS_MAX) / 2;
  timers.advance(delayMs - 1);
  assertEquals(source!.reconciles, 0);
  timers.advance(1);
  assertEquals(source!.reconciles, 1);
  await Promise.resolve();
  await Promise.resolve();
  timers.advance(delayMs);
  assertEquals(source!.reconciles, 2);
  await catalog.stop();
  assertEquals([source!.isStopped, timers.pendingCount], [true, 0]);
});

Deno.test("targets are each (address, port) once, in the best of its states", () => {
  const { sinks: [sink], catalog } = open("kubernetes");
  const at = (state: Endpoint["state"], address: string) =>
    endpointOf(address, { state });
  sink!.add({
    endpoints: [{
      service: "default/a",
      endpoints: [
        at("serving", "10.0.0.1:80"),
        at("serving", "10.0.0.2:80"),
        at("ready", "10.0.0.1:80"),
        at("terminating", "10.0.0.3:80"),
      ],
    }],
  });
  const targets = targetsOf(catalog.snapshot, "default/a", "");
  assertEquals(
    targets.map(({ address, endpoint }) => [address, endpoint.state]),
    [["10.0.0.1", "ready"], ["10.0.0.2", "serving"], [
      "10.0.0.3",
      "terminating",
    ]],
  );
  assert(targetsOf(catalog.snapshot, "default/a", "") === targets);
  assertEquals(usableTargets(targets).map(({ address }) => address), [
    "10.0.0.1",
  ]);
  assertEquals(usableTargets(targets.slice(1)).map(({ address }) => address), [
    "10.0.0.2",
  ]);
  assertEquals(targetsOf(catalog.snapshot, "default/a", "http"), []);
  assertEquals(targetsOf(catalog.snapshot, "default/none", ""), []);
});

Deno.test("targets of one address are told apart by port and network", () => {
  const { sinks: [sink], catalog } = open("kubernetes");
  const behind = (value: string) =>
    ({ via: { kind: "agent", agent: { key: "id", value } } }) as const;
  const all = [
    endpointOf("10.0.0.1:80", { state: "serving" }),
    endpointOf("10.0.0.1:81"),
    endpointOf("10.0.0.1:80", behind("edge1")),
    endpointOf("10.0.0.1:80", behind("edge2")),
    endpointOf("10.0.0.1:80"),
    endpointOf("10.0.0.1:80", behind("edge2")),
  ];
  sink!.add({ endpoints: [{ service: "default/a", endpoints: all }] });
  const list = catalog.snapshot.endpoints.get("default/a")!;
  const targets = targetsOf(catalog.snapshot, "default/a", "");
  assertEquals(
    targets.map(({ endpoint }) => list.indexOf(endpoint)),
    [4, 1, 2, 3],
  );
});

// --- Against a model ---------------------------------------------------------------

const KEYS = ["default/a", "default/b", "other/a", "other/c"];

/** What one source has said, kept the simple way. */
interface SourceModel {
  services: Map<string, Service>;
  endpoints: Map<string, readonly Endpoint[]>;
}

/** The catalog that a person would work out on paper. */
function merged(models: readonly SourceModel[]) {
  const services = new Map<string, Service>();
  const endpoints = new Map<string, readonly Endpoint[]>();
  for (const key of KEYS) {
    const owner = models.find((model) => model.services.has(key));
    if (owner !== undefined) services.set(key, owner.services.get(key)!);
    const speaks = owner?.endpoints.has(key)
      ? owner
      : models.find((model) => model.endpoints.has(key));
    if (speaks !== undefined) endpoints.set(key, speaks.endpoints.get(key)!);
  }
  return { services, endpoints };
}

function randomEndpoints(prng: Prng, key: string) {
  const addresses = Array.from(
    { length: prng.below(4) },
    (_, i) => `10.0.${i}.${prng.below(3)}:${80 + prng.below(2)}`,
  );
  return endpointsOf(key, ...addresses);
}

function step(
  prng: Prng,
  { sink }: ScriptedSource,
  model: SourceModel,
): void {
  const keys = KEYS.filter(() => prng.below(2) === 0);
  const services = keys.map((key) => serviceOf(key, 80 + prng.below(3)));
  const endpoints = keys.map((key) => randomEndpoints(prng, key));
  const put = () => {
    for (const [i, key] of keys.entries()) {
      model.services.set(key, services[i]!);
      model.endpoints.set(key, endpoints[i]!.endpoints);
    }
  };
  switch (prng.below(6)) {
    case 0:
      sink.set({ services, endpoints });
      model.services.clear();
      model.endpoints.clear();
      return put();
    case 1:
      sink.set({ services });
      model.services = new Map(keys.map((key, i) => [key, services[i]!]));
      return;
    case 2:
      sink.add({ services, endpoints });
      return put();
    case 3:
      sink.remove({ services: keys });
      for (const key of keys) model.services.delete(key);
      return;
    case 4:
      sink.remove({ endpoints: keys });
      for (const key of keys) model.endpoints.delete(key);
      return;
    default: {
      // It went away, came back, and lists what it had all along.
      sink.failed("Cannot reach it: gone", 100);
      const all = {
        services: [...model.services.values()],
        endpoints: [...model.endpoints].map(([service, endpoints]) => ({
          service,
          endpoints,
        })),
      };
      if (prng.below(2) === 0) sink.set(structuredClone(all));
      else sink.repair(structuredClone(all));
      sink.synced();
    }
  }
}

/** Applies a diff to what was there, as a follower would. */
function applied(before: Snapshot, diff: Diff, after: Snapshot): void {
  const names = new Set(before.services.keys());
  const keyOf = ({ namespace, name }: Service) => `${namespace}/${name}`;
  for (const service of diff.services.removed) names.delete(keyOf(service));
  for (const service of diff.services.added) names.add(keyOf(service));
  assertEquals(names, new Set(after.services.keys()));
  for (const { before: old, after: now } of diff.services.changed) {
    assert(before.services.get(keyOf(old)) === old);
    assert(after.services.get(keyOf(now)) === now);
  }
  const differing = new Set(diff.endpoints.map(({ service }) => service));
  for (const key of KEYS) {
    const same = before.endpoints.get(key) === after.endpoints.get(key);
    const isEmpty = !before.endpoints.get(key)?.length &&
      !after.endpoints.get(key)?.length;
    assertEquals(differing.has(key), !same && !isEmpty);
  }
}

Deno.test("any SET, ADD, REMOVE of three sources with restarts equals a model", async () => {
  await forAll(60, (prng) => {
    const { sources, catalog } = open("file", "kubernetes", "etcd");
    const models = sources.map((): SourceModel => ({
      services: new Map(),
      endpoints: new Map(),
    }));
    let seen = catalog.snapshot;
    catalog.follow((snapshot, diff) => {
      applied(seen, diff, snapshot);
      seen = snapshot;
    });
    for (let i = 0; i < 40; i++) {
      const index = prng.below(3);
      step(prng, sources[index]!, models[index]!);
      const { services, endpoints } = merged(models);
      assertEquals(new Map(catalog.snapshot.services), services);
      assertEquals(new Map(catalog.snapshot.endpoints), endpoints);
    }
    assertEquals(new Map(seen.services), merged(models).services);
    for (const { driftRepaired } of catalog.status) {
      assertEquals(driftRepaired, 0);
    }
  });
});

Deno.test("it is known which source counts, and each shadow is reported once", () => {
  const { sinks: [file, etcd], catalog, log } = open("file", "etcd");
  file!.set({ services: [serviceOf("web", 80)] });
  assertEquals(catalog.originOf("default/web"), { service: "file" });
  etcd!.set({ endpoints: [endpointsOf("web", "10.0.0.1:80")] });
  assertEquals(catalog.originOf("default/web"), {
    service: "file",
    endpoints: "etcd",
  });
  assertEquals(catalog.snapshot.endpoints.get("default/web")?.length, 1);
  const reported = () =>
    log.lines.filter(({ message }) => message.includes("is described by"));
  assertEquals(reported(), []);
  etcd!.add({ services: [serviceOf("web", 81)] });
  etcd!.add({ services: [serviceOf("web", 82)] });
  assertEquals(
    reported().map(({ message }) => message),
    ["default/web is described by file and etcd: what file says counts"],
  );
  file!.remove({ services: ["default/web"] });
  assertEquals(catalog.originOf("default/web")?.service, "etcd");
  assertEquals(catalog.originOf("default/nothing"), undefined);
});

Deno.test("one name stands for one source, and each has one", () => {
  assertThrows(() => open("one", "one"), TypeError, '"one"');
  assertThrows(() => open(""), TypeError, '""');
});
