import { assertEquals, assertStringIncludes } from "@std/assert";
import { connectKubernetes } from "../../../../neighbours/kubernetes/connect.ts";
import type {
  EndpointSlice,
  KubernetesService,
} from "../../../../neighbours/kubernetes/objects.ts";
import {
  failure,
  FakeApiServer,
  plainClient,
} from "../../../../tests/support/peers/fake_apiserver.ts";
import { FakeTimers } from "../../../../tests/support/memory/fake_timers.ts";
import { RecordedSink } from "../../../../tests/support/watch/recorded_sink.ts";
import { KubernetesSource, WATCH_GRACE_MS } from "./kubernetes.ts";

const SERVICES = "/api/v1/services";
const SLICES = "/apis/discovery.k8s.io/v1/endpointslices";

/** A source of a fake API server. */
class Rig implements AsyncDisposable {
  readonly sink = new RecordedSink();
  readonly timers = new FakeTimers();
  readonly source: KubernetesSource;
  #grace = Promise.withResolvers<void>();

  private constructor(readonly server: FakeApiServer) {
    const { timers } = this;
    timers.onSet = (delayMs) => {
      if (delayMs === WATCH_GRACE_MS) this.#grace.resolve();
    };
    this.source = new KubernetesSource({
      client: plainClient(server.url, timers),
      timers,
      random: () => 0,
    });
  }

  /** Resolves when both are listed and watched. */
  static async open(server = FakeApiServer.start()): Promise<Rig> {
    const rig = new Rig(server);
    const synced = rig.sink.next(/synced/);
    rig.source.start(rig.sink);
    await synced;
    return rig;
  }

  get names(): string[] {
    return [...this.sink.entries.services.keys()].sort();
  }

  /** Resolves when the source waits for what the watch may have to say. */
  async grace(): Promise<void> {
    await this.#grace.promise;
    this.#grace = Promise.withResolvers();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.source.stop();
    await this.server[Symbol.asyncDispose]();
    assertEquals(this.timers.pendingCount, 0, "a timer is left");
  }
}

function service(
  name: string,
  port = 80,
  clusterIP = "10.96.0.7",
): KubernetesService {
  return {
    metadata: { namespace: "shop", name },
    spec: { clusterIP, ports: [{ port }] },
  };
}

function slice(
  name: string,
  of: string,
  ...addresses: readonly string[]
): EndpointSlice {
  return {
    metadata: {
      namespace: "shop",
      name,
      labels: { "kubernetes.io/service-name": of },
    },
    addressType: "IPv4",
    endpoints: addresses.map((address) => ({ addresses: [address] })),
    ports: [{ port: 8080 }],
  };
}

// By its name in kube-proxy; later ones are ours.

Deno.test("NewEndpointsSourceApi_UpdatesAndMultipleEndpoints", async () => {
  await using rig = await Rig.open();
  const put = (of: string, ...addresses: readonly string[]) => () =>
    rig.server.put(SLICES, slice(of, of, ...addresses));
  const steps: readonly [() => void, Record<string, readonly string[]>][] = [
    [put("e1", "1.2.3.4"), { e1: ["1.2.3.4"] }],
    [put("e2", "5.6.7.8"), { e1: ["1.2.3.4"], e2: ["5.6.7.8"] }],
    [put("e1", "4.3.2.1"), { e1: ["4.3.2.1"], e2: ["5.6.7.8"] }],
    [() => rig.server.remove(SLICES, "e1"), { e2: ["5.6.7.8"] }],
    [() => rig.server.remove(SLICES, "e2"), {}],
  ];
  for (const [act, expected] of steps) {
    const received = rig.sink.next(/change/);
    act();
    await received;
    const seen = [...rig.sink.entries.endpoints].map(([key, endpoints]) => [
      key.replace("shop/", ""),
      endpoints.map(({ address }) => address),
    ]);
    assertEquals(Object.fromEntries(seen), expected);
  }
});

Deno.test("what is there is said whole, then what changes", async () => {
  const server = FakeApiServer.start();
  server.put(SERVICES, service("web"));
  server.put(SERVICES, service("headless", 80, "None"));
  server.put(SLICES, slice("web-1", "web", "10.0.0.1"));
  server.put(SLICES, slice("web-2", "web", "10.0.0.2"));
  await using rig = await Rig.open(server);
  assertEquals(rig.names, ["shop/web"]);
  assertEquals(rig.sink.addresses("shop/web"), ["10.0.0.1", "10.0.0.2"]);
  assertEquals(rig.sink.calls.toSorted(), ["set", "set", "synced"]);
  for (const { query } of server.requests) {
    assertEquals(
      query.get("labelSelector"),
      "!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name",
    );
  }
  let received = rig.sink.next(/change/);
  server.put(SLICES, slice("web-1", "web", "10.0.0.1", "10.0.0.3"));
  await received;
  assertEquals(
    rig.sink.addresses("shop/web"),
    ["10.0.0.1", "10.0.0.3", "10.0.0.2"],
  );
  received = rig.sink.next(/change/);
  server.remove(SERVICES, "web");
  await received;
  assertEquals(rig.names, []);
});

Deno.test("a service that becomes headless is gone", async () => {
  const server = FakeApiServer.start();
  server.put(SERVICES, service("web"));
  await using rig = await Rig.open(server);
  const received = rig.sink.next(/change/);
  server.put(SERVICES, service("web", 80, "None"));
  await received;
  assertEquals(rig.names, []);
});

Deno.test("a slice that changes its service leaves the other without it", async () => {
  const server = FakeApiServer.start();
  server.put(SLICES, slice("a", "web", "10.0.0.1"));
  await using rig = await Rig.open(server);
  const received = rig.sink.next(/change/);
  server.put(SLICES, slice("a", "db", "10.0.0.1"));
  await received;
  assertEquals(rig.sink.addresses("shop/web"), []);
  assertEquals(rig.sink.addresses("shop/db"), ["10.0.0.1"]);
});

Deno.test("an address that is none is refused once, and the others are used", async () => {
  await using rig = await Rig.open();
  for (const last of ["10.0.0.2", "10.0.0.3"]) {
    const received = rig.sink.next(/change/);
    rig.server.put(SLICES, slice("web-1", "web", "not/one", last));
    await received;
    assertEquals(rig.sink.addresses("shop/web"), [last]);
  }
  assertEquals(rig.sink.refusals, [
    'EndpointSlice shop/web-1: 1 endpoints are left out; saw "not/one", ' +
    "wanted an IP address or a host name",
  ]);
});

Deno.test("while the API server is away all stays, and it is said when that ends", async () => {
  const server = FakeApiServer.start();
  server.put(SERVICES, service("web"));
  server.put(SLICES, slice("web-1", "web", "10.0.0.1"));
  await using rig = await Rig.open(server);
  const watches = [await server.nextWatch(), await server.nextWatch()];
  const gone = () => failure(403, "Forbidden", "not you");
  server.failNext(gone, gone);
  rig.timers.advance(1_000);
  for (const watch of watches) watch.end();
  const failures = () =>
    rig.sink.calls.filter((call) => call.startsWith("failed"));
  while (failures().length < 2) await rig.sink.next(/failed/);
  assertEquals(rig.names, ["shop/web"]);
  assertEquals(rig.sink.addresses("shop/web"), ["10.0.0.1"]);
  const again = rig.sink.next(/synced/);
  rig.timers.advance(100);
  await again;
});

Deno.test("an annotation that cannot be used is said once", async () => {
  await using rig = await Rig.open();
  const put = async (at: string, balance: string) => {
    const { metadata, spec } = service("web");
    const annotations = { "proxy.tunnel/balance": balance };
    const received = rig.sink.next(/change/);
    const object: KubernetesService = {
      metadata: { ...metadata, annotations, labels: { at } },
      ...spec === undefined ? {} : { spec },
    };
    rig.server.put(SERVICES, object);
    await received;
  };
  const refused = () =>
    rig.sink.calls.filter((call) => call.startsWith("refused"));
  await put("1", "dice");
  await put("2", "dice");
  assertEquals([rig.names, refused().length], [["shop/web"], 1]);
  await put("3", "coin");
  assertEquals(refused().length, 2);
  await put("4", "random");
  const { policy } = rig.sink.entries.services.get("shop/web")!;
  assertEquals([policy, refused().length], [{ balance: "random" }, 2]);
});

Deno.test("an API server that is away is one short sentence for both", async () => {
  const server = FakeApiServer.start();
  await server[Symbol.asyncDispose]();
  const timers = new FakeTimers();
  const sink = new RecordedSink();
  const master = server.url;
  const source = new KubernetesSource({
    client: connectKubernetes({ master }, timers),
    timers,
    random: () => 0,
  });
  source.start(sink);
  while (sink.calls.length < 2) await sink.next(/failed/);
  const [first, second] = sink.calls;
  assertEquals(first, second);
  assertStringIncludes(
    first!,
    `Cannot follow the cluster: no answer from ${master}: `,
  );
  assertEquals(first!.length < 160 && !first!.includes("labelSelector"), true);
  await source.stop();
});

Deno.test("reading all again repairs nothing that the watch says, too", async () => {
  const server = FakeApiServer.start();
  server.put(SERVICES, service("web"));
  await using rig = await Rig.open(server);
  await rig.source.reconcile();
  assertEquals(rig.sink.calls.filter((call) => call === "repair"), []);
  const watches = [await server.nextWatch(), await server.nextWatch()];
  const watch = watches.find(({ collection }) => collection === SERVICES)!;
  server.mute(() => server.put(SERVICES, service("late")));
  const reconciling = rig.source.reconcile();
  await rig.grace();
  const received = rig.sink.next(/change/);
  watch.send("ADDED", server.find(`${SERVICES}/late`));
  await received;
  rig.timers.advance(WATCH_GRACE_MS);
  await reconciling;
  const same = rig.sink.next(/change|repair/);
  server.put(SERVICES, service("last"));
  await same;
  assertEquals(rig.sink.calls.filter((call) => call === "repair"), []);
  assertEquals(rig.names, ["shop/last", "shop/late", "shop/web"]);
});

Deno.test("what the watch has missed is repaired and counted", async () => {
  const server = FakeApiServer.start();
  server.put(SERVICES, service("web"));
  server.put(SERVICES, service("old"));
  await using rig = await Rig.open(server);
  server.mute(() => {
    server.put(SERVICES, service("web", 81));
    server.put(SLICES, slice("web-1", "web", "10.0.0.1"));
    server.remove(SERVICES, "old");
  });
  const synced = rig.sink.next(/synced/);
  const reconciling = rig.source.reconcile();
  await rig.grace();
  rig.timers.advance(WATCH_GRACE_MS);
  await reconciling;
  await synced;
  assertEquals(rig.names, ["shop/web"]);
  assertEquals(rig.sink.addresses("shop/web"), ["10.0.0.1"]);
  assertEquals(rig.sink.drift, 3);
});
