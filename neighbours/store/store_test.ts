import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { memoryFolder } from "../../tests/support/memory/memory_folder.ts";
import {
  MemoryPlace,
  MemoryStore,
} from "../../tests/support/memory/memory_store.ts";
import { FakeEtcd } from "../../tests/support/peers/fake_etcd.ts";
import {
  FakeApiServer,
  plainClient,
} from "../../tests/support/peers/fake_apiserver.ts";
import { EtcdPlace } from "./etcd_place.ts";
import { KubernetesPlace } from "./kubernetes_place.ts";
import { RemoteStore } from "./remote_store.ts";
import type { Place } from "./transaction.ts";
import { type SealingKey, sealingKey } from "./sealing.ts";
import { DirectoryEphemerals } from "./directory_ephemerals.ts";
import { DirectoryStore } from "./directory_store.ts";
import type { Store } from "./store.ts";
import { StoreAwayError, StoreError } from "./store_error.ts";
import { eventually } from "../../tests/support/watch/patience.ts";

// What every engine promises, whatever it keeps records in: two servers each.

/** Two stores over one place. */
interface TwoStores extends AsyncDisposable {
  readonly one: Store;
  readonly other: Store;
}

async function directory(): Promise<TwoStores> {
  const root = memoryFolder();
  const fill = () => Promise.resolve();
  const { state } = await DirectoryStore.openOrCreate(root, fill);
  return {
    one: state,
    other: await DirectoryStore.open(root),
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

async function remote(
  store: () => Place,
  end: () => void | Promise<void> = () => {},
  key?: SealingKey,
): Promise<TwoStores> {
  const open = () =>
    RemoteStore.open({
      store: store(),
      key,
      timers: systemTimers,
      wallClock: Date.now,
      random: Math.random,
      warn: () => {},
    });
  const engines = [await open(), await open()] as const;
  return {
    one: engines[0],
    other: engines[1],
    [Symbol.asyncDispose]: async () => {
      for (const engine of engines) await engine.close();
      await end();
    },
  };
}

function memory(): Promise<TwoStores> {
  const place = new MemoryPlace();
  return remote(() => new MemoryStore(place));
}

function etcd(): Promise<TwoStores> {
  const cluster = new FakeEtcd(systemTimers);
  const tools = { timers: systemTimers, random: Math.random };
  const client = cluster.client(tools);
  const place = { client, prefix: "/tunnel/state/", name: "a fake" };
  return remote(
    () => new EtcdPlace({ ...place, ...tools }),
    () => client[Symbol.dispose](),
  );
}

async function sealed(): Promise<TwoStores> {
  const place = new MemoryPlace();
  const key = await sealingKey(new Uint8Array(32), "/key");
  return await remote(() => new MemoryStore(place), () => {}, key);
}

function kubernetes(): Promise<TwoStores> {
  const api = FakeApiServer.start();
  const tools = { timers: systemTimers, random: Math.random };
  const client = plainClient(api.url, systemTimers);
  const place = { client, namespace: "edge", name: "a fake" };
  return remote(
    () => new KubernetesPlace({ ...place, ...tools }),
    async () => {
      client[Symbol.dispose]();
      await api[Symbol.asyncDispose]();
    },
  );
}

const PLACES = { directory, memory, sealed, etcd, kubernetes };

/** Settles when the other engine has heard of it. */
const until = (isSo: () => boolean) => eventually("the other heard", isSo);

for (const [name, open] of Object.entries(PLACES)) {
  const promise = (
    sentence: string,
    check: (place: TwoStores) => Promise<void>,
  ) =>
    Deno.test(`${name}: ${sentence}`, async () => {
      await using place = await open();
      await check(place);
    });

  promise("what is put is read, listed, and gone when removed", async (at) => {
    const { one, other } = at;
    assertEquals(await one.read("nodes/a.json"), undefined);
    assertEquals(await one.list("nodes"), []);
    await one.transact(async (change) => {
      await change.put("nodes/b.json", "b\n");
      await change.put("nodes/a.json", "a");
      assertEquals(await change.read("nodes/a.json"), "a");
      assertEquals(await change.list("nodes"), ["a.json", "b.json"]);
      assertEquals(await other.read("nodes/a.json"), undefined);
    });
    assertEquals(one.peek("nodes/a.json"), "a", "known here at once");
    assertEquals(await other.read("nodes/b.json"), "b\n");
    await until(() => other.peek("nodes/b.json") === "b\n");
    assertEquals(await other.list("nodes", "b"), ["b.json"]);
    const isGone = await other.transact((change) =>
      change.remove("nodes/a.json")
    );
    assertEquals(isGone, true);
    assertEquals(await one.read("nodes/a.json"), undefined);
    await until(() => one.peek("nodes/a.json") === undefined);
    assertEquals(
      await one.transact((change) => change.remove("nodes/a.json")),
      false,
    );
  });

  promise("of many who create a record one wins", async ({ one, other }) => {
    const create = (index: number) =>
      (index % 2 === 0 ? one : other).transact((change) =>
        change.create("tokens/t.use-1", `${index}`)
      );
    const won = await Promise.all(
      Array.from({ length: 8 }, (_, i) => create(i)),
    );
    assertEquals(won.filter((isOurs) => isOurs).length, 1, `${won}`);
    assertEquals(await one.read("tokens/t.use-1"), `${won.indexOf(true)}`);
  });

  promise("no change is lost under others", async ({ one, other }) => {
    const count = (engine: Store) =>
      engine.transact(async (change) => {
        const before = Number(await change.read("nodes/n.json") ?? "0");
        await change.put("nodes/n.json", `${before + 1}`);
      });
    await Promise.all(
      [1, 2, 3, 4, 5].flatMap(() => [count(one), count(other)]),
    );
    assertEquals(await one.read("nodes/n.json"), "10");
  });

  promise(
    "a change that fails changes nothing, and stops nobody",
    async (at) => {
      const { one } = at;
      const failing = one.transact(async (change) => {
        await change.put("nodes/a.json", "a");
        throw new Error("no");
      });
      await assertRejects(() => failing, Error, "no");
      assertEquals(await one.read("nodes/a.json"), undefined);
      await one.transact((change) => change.put("nodes/a.json", "a"));
    },
  );

  promise("whoever watches hears which records changed", async (at) => {
    const { one, other } = at;
    // A directory's watch reports the roles of a file that is there.
    await one.transact((change) => change.put("ca/roles.json", "{}"));
    await one.transact((change) => change.put("nodes/old.json", "a"));
    const heard: string[] = [];
    const stop = other.watch({
      onChange: (folder, names = ["*"]) =>
        heard.push(...names.map((it) => `${folder}/${it}`)),
      onProblem: (line) => heard.push(line),
    });
    await one.transact((change) => change.put("nodes/new.json", "b"));
    await until(() => heard.includes("nodes/new.json"));
    await one.transact((change) => change.remove("nodes/old.json"));
    await until(() => heard.includes("nodes/old.json"));
    await one.transact((change) => change.put("ca/roles.json", '{"a":1}'));
    await until(() => heard.some((it) => it.startsWith("ca/")));
    stop();
  });

  promise(
    "records of a private key are read as they were written",
    async (at) => {
      const { one, other } = at;
      const key = `ca/${"0".repeat(16)}.pem`;
      const text =
        "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n";
      await one.transact((change) => change.put(key, text));
      assertEquals(await other.read(key, "secret"), text);
      const seen = await one.transact((change) => change.read(key, "secret"));
      assertEquals(seen, text);
    },
  );
}

Deno.test("a state that is away serves what is known, and refuses changes at once", async () => {
  const place = new MemoryPlace();
  const said: string[] = [];
  await using engine = Object.assign(
    await RemoteStore.open({
      store: new MemoryStore(place),
      timers: systemTimers,
      wallClock: () => 0,
      random: () => 0,
      warn: (line) => said.push(line),
    }),
    {
      async [Symbol.asyncDispose]() {
        await engine.close();
      },
    },
  );
  place.set("nodes/a.json", "a");
  place.leave();
  place.leave();
  assertEquals(engine.outage, { sinceMs: 0, why: "it is away" });
  assertEquals(engine.peek("nodes/a.json"), "a");
  assertEquals(await engine.list("nodes"), ["a.json"]);
  await assertRejects(
    () => engine.transact((change) => change.put("nodes/b.json", "b")),
    StoreError,
    "Cannot reach the state in memory (a model), so nothing is changed: it is",
  );
  const heard: unknown[] = [];
  engine.watch({
    onChange: (folder, names) => heard.push([folder, names]),
    onProblem: () => {},
  });
  place.records.delete("nodes/a.json");
  place.comeBack();
  assertEquals(engine.peek("nodes/a.json"), undefined);
  assertEquals(heard, [["nodes", undefined], ["ca", undefined]]);
  assertEquals(engine.outage, undefined);
  assertEquals(said.length, 2, said.join("\n"));
  await engine.transact((change) => change.put("nodes/b.json", "b"));
});

Deno.test("a place that refuses at once, while it comes back, is asked again", async () => {
  const store = new MemoryStore(new MemoryPlace());
  const get = store.get.bind(store);
  let refusals = 0;
  let gets = 0;
  store.get = (key) => {
    if (++gets > refusals) return get(key);
    return Promise.reject(new StoreAwayError("it comes back"));
  };
  const engine = await RemoteStore.open({
    store,
    timers: {
      now: () => 0,
      after: (_ms, act) => systemTimers.after(0, act),
    },
    wallClock: Date.now,
    random: () => 0,
    warn: () => {},
  });
  const change = () =>
    engine.transact((change) => change.put("nodes/a.json", "a"));
  refusals = 3;
  await change();
  assertEquals(engine.peek("nodes/a.json"), "a");
  refusals = Infinity;
  gets = 0;
  await assertRejects(change, StoreAwayError, "it comes back");
  assertEquals(gets, 5);
  await engine.close();
});

Deno.test("a change that loses every time is given up, in words", async () => {
  const place = new MemoryPlace();
  const engine = await RemoteStore.open({
    store: new MemoryStore(place),
    timers: systemTimers,
    wallClock: Date.now,
    random: () => 0,
    warn: () => {},
  });
  let tries = 0;
  place.meanwhile = () => void place.set("nodes/a.json", `${++tries}`);
  await assertRejects(
    () => engine.transact((change) => change.put("nodes/a.json", "mine")),
    StoreError,
    "others changed the same records 32 times",
  );
  await assertRejects(
    () => engine.transact((it) => it.put("nodes/b.json", "b".repeat(10_001))),
    StoreError,
    "it has 10001 bytes, at most 10000",
  );
  await engine.close();
});

Deno.test("a directory that lost its state is away until it is back", async () => {
  const root = await Deno.makeTempDir();
  const { state } = await DirectoryStore.openOrCreate(
    root,
    (change) => change.put("nodes/a.json", "{}"),
  );
  assertEquals(state.peek("nodes/a.json"), "{}");
  const said: string[] = [];
  const changed: string[] = [];
  const stop = state.watch({
    onChange: (folder, names) => changed.push(`${folder} ${names ?? "any"}`),
    onProblem: (line) => said.push(line),
  });
  await Deno.rename(`${root}/format`, `${root}/elsewhere`);
  await Deno.remove(`${root}/nodes/a.json`);
  await eventually("it is away", () => state.outage !== undefined);
  assertMatch(
    said[0]!,
    /^the state directory is away: .*format cannot be read/,
  );
  assertEquals(state.peek("nodes/a.json"), "{}", "known nodes go on");
  assertEquals(changed, [], "what is there now is no change");
  const inChange = state.transact((change) => change.put("nodes/b.json", ""));
  await assertRejects(() => inChange, StoreAwayError);
  await assertRejects(() => state.read("nodes/a.json"), StoreAwayError);
  await assertRejects(() => state.list("nodes"), StoreAwayError);

  const place = new DirectoryEphemerals({
    ...{ path: `${root}/peers`, instanceId: "aaaaaaaa" },
    ...{ timeoutMs: 1_000, timers: systemTimers },
  });
  await place.write("agents-00", "it is not known to be a state");
  await Deno.rename(`${root}/elsewhere`, `${root}/format`);
  await Deno.writeTextFile(`${root}/nodes/c.json`, "{}");
  await eventually("it is back", () => state.outage === undefined);
  assertMatch(said[1]!, /^the state directory is back after /);
  assertEquals(changed.slice(0, 2), ["nodes any", "ca any"]);
  assertEquals(state.peek("nodes/a.json"), undefined);
  stop();

  await place.write("agents-00", "in a state");
  await Deno.remove(root, { recursive: true });
  const late = place.write("agents-00", "nowhere");
  await assertRejects(() => late, StoreAwayError);
  await assertRejects(() => Deno.stat(root), Deno.errors.NotFound);
});
