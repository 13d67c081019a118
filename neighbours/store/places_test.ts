import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { KV_METHODS } from "../etcd/etcd_messages.ts";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import {
  failure,
  FakeApiServer,
  plainClient,
} from "../../tests/support/peers/fake_apiserver.ts";
import { FakeEtcd } from "../../tests/support/peers/fake_etcd.ts";
import { EtcdPlace } from "./etcd_place.ts";
import { KubernetesPlace, PROBE_MS } from "./kubernetes_place.ts";
import { OPEN_TIMEOUT_MS, RemoteStore } from "./remote_store.ts";
import { NO_VERSION, type PlaceEvents } from "./transaction.ts";
import { StoreAwayError, StoreError } from "./store_error.ts";
import { leaseName } from "../kubernetes/paths.ts";
import type { Lease } from "../kubernetes/objects.ts";
import { connectStore } from "./store_connection.ts";

// Answers that are lost, refused, or never come.

const NEW = { key: "nodes/a.json", text: "a", version: NO_VERSION };
const TOOLS = { timers: systemTimers, random: () => 0 };

function etcdRig() {
  const etcd = new FakeEtcd(systemTimers);
  const client = etcd.client();
  const place = { client, prefix: "/s/", name: "a fake" };
  const store = new EtcdPlace({ ...place, ...TOOLS });
  return { etcd, client, store };
}

Deno.test("opening ends at its deadline, whatever is still under way there", async () => {
  const timers = new FakeTimers();
  const { client, store } = etcdRig();
  // A quorum is lost: what was asked is not answered, and has a time of its own.
  store.follow = () => {};
  store.stop = () => new Promise<void>(() => {});
  const opening = RemoteStore.open({
    ...{ store, timers, wallClock: Date.now, random: () => 0 },
    warn: () => {},
  });
  timers.advance(OPEN_TIMEOUT_MS);
  await assertRejects(() => opening, StoreAwayError, "Cannot open the state");
  client[Symbol.dispose]();
});

Deno.test("etcd: whether a change was made is seen when its answer is lost", async () => {
  const { etcd, client, store } = etcdRig();
  const lose = () =>
    etcd.failures.set(KV_METHODS.txn, [
      new GrpcError(StatusCode.UNAVAILABLE, "gone"),
    ]);
  lose();
  assertEquals(await store.commit([NEW], []), { kind: "conflict" });
  // It was made, by us or by somebody who wanted the same.
  etcd.change({ "/s/nodes/a.json": "a" });
  lose();
  const outcome = await store.commit([NEW], []);
  assertEquals(outcome, { kind: "done", versions: [`${etcd.revision}`] });
  etcd.failures.set(KV_METHODS.txn, [
    new GrpcError(StatusCode.PERMISSION_DENIED, "permission denied"),
  ]);
  const refused = await assertRejects(
    () => store.commit([NEW], []),
    StoreError,
    "permission denied; grant the user a role",
  );
  assert(!(refused instanceof StoreAwayError));
  client[Symbol.dispose]();
});

Deno.test("etcd: what was read must still be so when it is written", async () => {
  const { etcd, client, store } = etcdRig();
  etcd.change({ "/s/tokens/t.json": "t" });
  const { version } = (await store.get("tokens/t.json"))!;
  const guard = [{ key: "tokens/t.json", version }];
  etcd.change({ "/s/tokens/t.json": undefined });
  assertEquals(await store.commit([NEW], guard), { kind: "conflict" });
  assertEquals(etcd.keys, []);
  client[Symbol.dispose]();
});

async function kubeRig(timers = systemTimers) {
  const api = FakeApiServer.start();
  const client = plainClient(api.url, timers);
  const place = { client, namespace: "edge", name: "a fake" };
  const store = new KubernetesPlace({ ...place, timers, random: () => 0 });
  return await Promise.resolve({ api, client, store });
}

Deno.test("Kubernetes: whether a write was made is seen when its answer is lost", async () => {
  const { api, client, store } = await kubeRig();
  const collection = "/api/v1/namespaces/edge/secrets";
  api.failNext(() => failure(500, "InternalError", "no"));
  await assertRejects(() => store.commit([NEW], []), StoreAwayError, "500");
  api.failNext(({ body }) => {
    api.put(collection, body as Parameters<typeof api.put>[1]);
    return failure(504, "Timeout", "it took too long");
  });
  const made = await store.commit([NEW], []);
  const { version } = (await store.get(NEW.key))!;
  assertEquals(made, { kind: "done", versions: [version] });
  assertEquals(await store.commit([NEW], []), { kind: "conflict" });
  const old = { ...NEW, text: "b", version: "1" };
  assertEquals(await store.commit([old], []), { kind: "conflict" });
  const gone = [{ ...NEW, text: undefined, version: "1" }];
  assertEquals(await store.commit(gone, []), { kind: "conflict" });
  api.failNext(() => failure(403, "Forbidden", "no rights"));
  await assertRejects(() => store.get("nodes/b.json"), StoreError, "403");
  client[Symbol.dispose]();
  await api[Symbol.asyncDispose]();
});

Deno.test("Kubernetes: a Secret that is not what it says is refused", async () => {
  const { api, client, store } = await kubeRig();
  await store.commit([NEW], []);
  const [path] = api.log.filter((line) => line.startsWith("POST"));
  assertEquals(path, "POST /api/v1/namespaces/edge/secrets");
  const [{ metadata }] = api.requests.map(({ body }) =>
    body as { metadata: { name: string } }
  ).filter((body) => body !== undefined) as [{ metadata: { name: string } }];
  const odd = { metadata: { ...metadata }, data: { record: "%%%" } };
  api.put("/api/v1/namespaces/edge/secrets", odd);
  await assertRejects(
    () => store.get(NEW.key),
    StoreError,
    "it is not what a tunnel server wrote",
  );
  client[Symbol.dispose]();
  await api[Symbol.asyncDispose]();
});

Deno.test("Kubernetes: agents' Pods mount the Secret of the authorities", async () => {
  const { api, client, store } = await kubeRig();
  const [, name] = /\/(\S+)\)$/.exec(store.where("ca/bundle.crt"))!;
  const path = new URL(
    "../../deploy/kubernetes/agent/agent.yaml",
    import.meta.url,
  );
  assertStringIncludes(await Deno.readTextFile(path), `secretName: ${name}\n`);
  client[Symbol.dispose]();
  await api[Symbol.asyncDispose]();
});

Deno.test("Kubernetes: a watch that hears nothing is begun anew when nobody answers", async () => {
  const timers = new FakeTimers();
  const { api, client, store } = await kubeRig(timers);
  const said: string[] = [];
  const heard = Promise.withResolvers<void>();
  const following = [Promise.withResolvers<void>(), heard];
  const events: PlaceEvents = {
    listed: () => {},
    changed: () => {},
    following: () => {
      said.push("following");
      following.shift()?.resolve();
    },
    problem: (why) => said.push(why),
  };
  const first = following[0]!.promise;
  store.follow(events);
  await first;
  // No answer is an end of the connection here.
  api.failNext(() => {
    const body = new ReadableStream({
      start: (controller) => controller.error(new Error("cut")),
    });
    return new Response(body);
  });
  timers.advance(PROBE_MS);
  await heard.promise;
  assertEquals(said[0], "following");
  assert(said[1]!.includes("no answer from"), said.join("\n"));
  assertEquals(said[2], "following");
  const stopped = store.stop();
  await stopped;
  client[Symbol.dispose]();
  await api[Symbol.asyncDispose]();
});

Deno.test("a server's Lease in Kubernetes has the name that upstream gives it", async () => {
  await using api = FakeApiServer.start();
  const location = { master: api.url };
  const connection = await connectStore(
    { kind: "kubernetes", kubernetes: location, namespace: "tunnel" },
    systemTimers,
  );
  const peers = await connection.ephemerals("peers", {
    serverId: "s1",
    instanceId: "i1",
    timeoutMs: 2_000,
    timers: systemTimers,
  });
  const following = Promise.withResolvers<void>();
  peers.watch({
    changed() {},
    following: following.resolve,
    problem: following.reject,
  });
  peers.put("member", "here");
  await following.promise;
  await peers.close();
  connection.close();
  const made = api.requests.filter(({ method }) => method === "POST");
  const names = made.map(({ body }) => (body as Lease).metadata.name);
  assertEquals(names, [leaseName("s1")]);
});
