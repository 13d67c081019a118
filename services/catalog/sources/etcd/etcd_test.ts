import { assert, assertEquals } from "@std/assert";
import { StatusCode } from "../../../../proto/grpc/status.ts";
import { FakeEtcd } from "../../../../tests/support/peers/fake_etcd.ts";
import { FakeTimers } from "../../../../tests/support/memory/fake_timers.ts";
import { forAll, type Prng } from "../../../../tests/support/memory/prng.ts";
import { RecordedLog } from "../../../../tests/support/watch/recorded_log.ts";
import { RecordedSink } from "../../../../tests/support/watch/recorded_sink.ts";
import { nextTurn } from "../../../../tests/support/watch/event_loop.ts";
import { EtcdSource } from "./etcd.ts";
import type { EtcdLayout } from "./etcd_entries.ts";
import { REGISTRY_LAYOUT } from "./etcd_registry_layout.ts";
import { tunnelLayout } from "./etcd_tunnel_layout.ts";

/** A cluster, a source of it, and what the source said. */
class Rig implements AsyncDisposable {
  readonly timers = new FakeTimers();
  readonly etcd = new FakeEtcd(this.timers);
  readonly sink = new RecordedSink();
  readonly log = new RecordedLog();
  readonly source: EtcdSource;

  constructor(layout: EtcdLayout = tunnelLayout()) {
    const { timers, log, etcd } = this;
    const random = () => 0;
    const client = etcd.client();
    this.source = new EtcdSource({ client, layout, timers, random, log });
  }

  async started(): Promise<void> {
    this.source.start(this.sink);
    await this.etcd.until(() => this.etcd.watchCount === 1);
    await nextTurn();
  }

  /** Changes keys, and waits until that is known. */
  async change(changes: Record<string, string | undefined>): Promise<void> {
    this.etcd.change(changes);
    await nextTurn();
  }

  get services(): string[] {
    return [...this.sink.entries.services.keys()].sort();
  }

  /** Of a service: addresses and ports. */
  endpoints(service: string): string[] | undefined {
    return this.sink.entries.endpoints.get(service)
      ?.map(({ address, ports }) =>
        `${address} ${ports.map(({ name, port }) => `${name}:${port}`)}`
      );
  }

  get refusals(): readonly string[] {
    return this.sink.refusals;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.source.stop();
  }
}

const WEB = "/tunnel/services/default/web";
const WEB_1 = "/tunnel/endpoints/default/web/1";
const WEB_2 = "/tunnel/endpoints/default/web/2";
const ONE_PORT = '{"ports": [{"port": 80}]}';

Deno.test("services and endpoints come from keys of their own", async () => {
  await using rig = new Rig();
  rig.etcd.change({
    [WEB]: ONE_PORT,
    [WEB_2]: '{"address": "10.0.0.2", "port": 8080, "weight": 3}',
    [WEB_1]: '{"address": "10.0.0.1"}',
  });
  await rig.started();
  assertEquals(rig.services, ["default/web"]);
  assertEquals(rig.endpoints("default/web"), [
    "10.0.0.1 :80",
    "10.0.0.2 :8080",
  ]);
  await rig.change({ [WEB_1]: undefined });
  assertEquals(rig.endpoints("default/web"), ["10.0.0.2 :8080"]);
  await rig.change({ [WEB]: undefined });
  assertEquals(rig.services, []);
  assertEquals(rig.endpoints("default/web"), ["10.0.0.2 :8080"]);
  assertEquals(rig.refusals, []);
});

Deno.test("a service's routes come with it, and are refused with it", async () => {
  await using rig = new Rig();
  await rig.started();
  const portOf = (routes: readonly unknown[]) =>
    JSON.stringify({ ports: [{ port: 80, appProtocol: "grpc", routes }] });
  const SHOP = "/tunnel/services/shop/web";
  const route = { to: [{ service: "next", port: 80 }] };
  await rig.change({ [SHOP]: portOf([route]) });
  const routes = () =>
    rig.sink.entries.services.get("shop/web")?.ports[0]?.routes;
  const read = [{
    prefix: "/",
    to: [{ service: "shop/next", port: 80, weight: 1 }],
  }];
  assertEquals(routes(), read);
  await rig.change({ [SHOP]: portOf([{ ...route, prefix: "v1" }]) });
  assertEquals(routes(), read);
  assertEquals(rig.refusals.length, 1);
});

Deno.test("the order of endpoints does not depend on who came first", async () => {
  await using rig = new Rig();
  await rig.started();
  await rig.change({ [WEB_2]: '{"address": "10.0.0.2", "port": 2}' });
  await rig.change({ [WEB_1]: '{"address": "10.0.0.1", "port": 1}' });
  assertEquals(rig.endpoints("default/web"), ["10.0.0.1 :1", "10.0.0.2 :2"]);
});

Deno.test("an endpoint's port gets its name when its service is known", async () => {
  await using rig = new Rig();
  await rig.started();
  await rig.change({ [WEB_1]: '{"address": "10.0.0.1", "port": 8080}' });
  assertEquals(rig.endpoints("default/web"), ["10.0.0.1 :8080"]);
  await rig.change({ [WEB]: '{"ports": [{"name": "http", "port": 80}]}' });
  assertEquals(rig.endpoints("default/web"), ["10.0.0.1 http:8080"]);
  await rig.change({
    [WEB_1]: '{"address": "10.0.0.1", "ports": {"http": 1}}',
  });
  assertEquals(rig.endpoints("default/web"), ["10.0.0.1 http:1"]);
});

Deno.test("a value that cannot be used is refused alone, and what it said stays", async () => {
  await using rig = new Rig();
  rig.etcd.change({ [WEB]: ONE_PORT, [WEB_1]: '{"address": "10.0.0.1"}' });
  await rig.started();
  await rig.change({
    [WEB]: '{"ports": [{"port": 99999}]}',
    [WEB_1]: "address: 10.0.0.9",
    [WEB_2]: '{"address": "10.0.0.2"}',
    "/tunnel/else": "",
  });
  assertEquals(rig.endpoints("default/web"), ["10.0.0.1 :80", "10.0.0.2 :80"]);
  assertEquals(rig.refusals.length, 3);
  assert(rig.refusals.some((line) => line.includes("99999")));
  assert(rig.refusals.some((line) => line.includes("it is no JSON")));
  // Read again, it is still so, and was said.
  await rig.source.reconcile();
  assertEquals(rig.services, ["default/web"]);
  assertEquals(rig.endpoints("default/web"), ["10.0.0.1 :80", "10.0.0.2 :80"]);
  assertEquals(rig.refusals.length, 3);
  await rig.change({ [WEB_1]: undefined });
  assertEquals(rig.endpoints("default/web"), ["10.0.0.2 :80"]);
});

Deno.test("a service cannot be other than its key says", async () => {
  await using rig = new Rig();
  await rig.started();
  await rig.change({ [WEB]: '{"name": "db", "ports": [{"port": 80}]}' });
  await rig.change({
    "/tunnel/services/default/db":
      '{"ports": [{"port": 80}], "endpoints": [{"address": "10.0.0.1"}]}',
  });
  assertEquals(rig.services, []);
  assert(rig.refusals[0]!.includes('its key says "web"'), rig.refusals[0]);
  assert(rig.refusals[1]!.includes("keys of their own"), rig.refusals[1]);
});

Deno.test("an event that etcd never sent is found by reading all again", async () => {
  await using rig = new Rig();
  rig.etcd.change({ [WEB]: ONE_PORT });
  await rig.started();
  rig.etcd.isSilent = true;
  await rig.change({ [WEB]: undefined });
  assertEquals(rig.services, ["default/web"]);
  rig.etcd.isSilent = false;
  await rig.source.reconcile();
  assertEquals(rig.services, []);
  assertEquals(rig.sink.drift, 1);
});

/** Something that happens to a cluster with three services. */
async function happen(rig: Rig, prng: Prng): Promise<void> {
  const name = prng.pick(["web", "db", "dns"]);
  const port = prng.pick([80, 81]);
  const portName = prng.pick(["", "main"]);
  const service = JSON.stringify({ ports: [{ port, name: portName }] });
  const endpoint = JSON.stringify({ address: `10.0.0.${port}`, port });
  switch (prng.below(8)) {
    case 0:
      return rig.etcd.change({
        [`/tunnel/services/default/${name}`]: undefined,
      });
    case 1:
      rig.etcd.endWatches(StatusCode.UNAVAILABLE, "etcdserver: no leader");
      return await nextTurn();
    case 2:
      return rig.etcd.compact();
    case 3:
      return rig.timers.advance(prng.below(2_000));
    case 4:
      return await nextTurn();
    case 5:
      return rig.etcd.change({ [`/tunnel/services/default/${name}`]: service });
    default: {
      const key = `/tunnel/endpoints/default/${name}/${prng.below(4)}`;
      return rig.etcd.change({ [key]: prng.pick([endpoint, undefined]) });
    }
  }
}

Deno.test("whatever happens, in the end the source says what etcd has", async () => {
  await forAll(6, async (prng) => {
    await using rig = new Rig();
    await rig.started();
    for (let step = 0; step < 60; step++) await happen(rig, prng);
    do {
      await nextTurn();
      rig.timers.advance(1_000);
      await nextTurn();
    } while (rig.etcd.watchCount !== 1);
    // Who begins now receives the same.
    const fresh = new RecordedSink();
    const { timers, log } = rig;
    const random = () => 0;
    const source = new EtcdSource({
      client: rig.etcd.client(),
      layout: tunnelLayout(),
      timers,
      random,
      log,
    });
    const synced = fresh.next(/^synced$/);
    source.start(fresh);
    await synced;
    const sorted = (map: ReadonlyMap<string, unknown>) =>
      [...map].sort(([a], [b]) => a < b ? -1 : 1);
    const { services, endpoints } = rig.sink.entries;
    assertEquals(sorted(services), sorted(fresh.entries.services));
    assertEquals(sorted(endpoints), sorted(fresh.entries.endpoints));
    await source.stop();
  });
});

const SPEC = "/registry/services/specs/web";
const ADDRESSES = "/registry/services/endpoints/web";

Deno.test("kube-proxy 0.4's keys are read, and endpoints take no service with them", async () => {
  await using rig = new Rig(REGISTRY_LAYOUT);
  rig.etcd.change({
    [SPEC]: '{"kind":"Service","id":"web","apiVersion":"v1beta1","port":8765,' +
      '"protocol":"UDP","selector":{"name":"web"},"containerPort":80}',
    [ADDRESSES]: '{"kind":"Endpoints","id":"web","apiVersion":"v1beta1",' +
      '"endpoints":["10.0.0.1:80","[fd00::1]:81"]}',
  });
  await rig.started();
  assertEquals(rig.sink.entries.services.get("default/web")?.ports, [
    { name: "", port: 8765, protocol: "udp", listen: { port: 8765 } },
  ]);
  assertEquals(rig.endpoints("default/web"), ["10.0.0.1 :80", "fd00::1 :81"]);
  await rig.change({ [ADDRESSES]: undefined });
  assertEquals(rig.services, ["default/web"]);
  assertEquals(rig.endpoints("default/web"), undefined);
  await rig.change({ [SPEC]: undefined });
  assertEquals(rig.services, []);
});

Deno.test("of kube-proxy 0.4's endpoints, bad ones are left out", async () => {
  await using rig = new Rig(REGISTRY_LAYOUT);
  await rig.started();
  const bad = ["", "foobar", "foobar:-1", "10.0.0.2:99999"];
  const endpoints = ["10.0.0.1:80", ...bad, "foobar:8080"];
  await rig.change({ [ADDRESSES]: JSON.stringify({ id: "web", endpoints }) });
  assertEquals(rig.endpoints("default/web"), ["10.0.0.1 :80", "foobar :8080"]);
  assertEquals(rig.refusals.length, 1);
  assert(rig.refusals[0]!.includes('"foobar:-1" is left out'));
});

Deno.test("what later clusters write is refused, by name", async () => {
  await using rig = new Rig(REGISTRY_LAYOUT);
  await rig.started();
  await rig.change({
    "/registry/services/specs/default/web": "k8s\0\n\x0a\x02v1",
    "/registry/services/specs/a": "k8s\0\n\x0a\x02v1",
    "/registry/services/specs/b": '{"apiVersion":"v1","kind":"Service"}',
    "/registry/services/specs/c": "id: c",
    "/registry/services/specs/d": '{"id":"e","port":80}',
    "/registry/services/specs/e": '{"id":"e","port":80,"protocol":"SCTP"}',
    "/registry/services/specs/f": '{"id":"f","port":"80"}',
  });
  assertEquals(rig.services, []);
  const reasons = rig.refusals.map((line) => line.split(": ")[1]);
  assertEquals(reasons, [
    "it has a namespace, as in clusters after 0.4; take services from their " +
    "API server",
    "it is Kubernetes' protobuf, wanted JSON; take services from its API server",
    'its apiVersion is "v1", wanted v1beta1; take services from the API server',
    "it is no JSON",
    'its id is "e", its key says "d"',
    'its protocol is "SCTP", wanted TCP or UDP',
    'its port is "80", wanted 1 to 65535',
  ]);
});
