import { assert, assertEquals, assertMatch } from "@std/assert";
import { MetricRegistry } from "../../../platform/metrics/metrics.ts";
import { StatusCode } from "../../../proto/grpc/status.ts";
import { type ResourceKind, TYPE_URLS } from "../../../proto/xds/resource.ts";
import {
  DiscoveryRequestMessage,
  DiscoveryResponseMessage,
} from "../../../proto/xds/xds_messages.ts";
import { socketCaller } from "../../../tests/support/memory/fake_caller.ts";
import { FakeServerCall } from "../../../tests/support/memory/fake_server_call.ts";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../../../tests/support/watch/recorded_log.ts";
import {
  endpointsOf,
  ScriptedSource,
  serviceOf,
} from "../../../tests/support/watch/scripted_source.ts";
import { ADS_PATHS } from "../../ads/ads_connection.ts";
import { CATALOG_WAIT_MS, Discovery } from "./discovery.ts";

import { generateService } from "../generate/generate_service.ts";
import { SLICE_MS } from "../../../platform/time/slices.ts";
import { STALLED_MS } from "../streams/request_account.ts";
import { DISCOVERY_STREAMS_MAX, TICK_MS } from "../streams/open_streams.ts";
import { SEES_EVERYTHING, type Visibility } from "../../catalog/model/model.ts";

const WEB = "default/web:80";
const ARRIVAL = { ...socketCaller(), needsNoProof: true };

/** Discovery without sockets, in time that a test moves. */
class Rig implements AsyncDisposable {
  readonly timers = new FakeTimers();
  readonly log = new RecordedLog();
  readonly source = new ScriptedSource("script");
  readonly metrics = new MetricRegistry();
  visible: Visibility = SEES_EVERYTHING;
  readonly discovery: Discovery;
  /** Of making what one service becomes, milliseconds. */
  costMs = 0;

  /** @param isStarted Its ports may be open before it is. */
  constructor(isStarted = true) {
    this.discovery = new Discovery({
      sources: [this.source],
      windowMinMs: 50,
      windowMaxMs: 1_000,
    }, {
      log: this.log,
      timers: this.timers,
      metrics: this.metrics,
      random: () => 0,
      generate: (input, variant) => {
        if (this.costMs > 0) this.timers.advance(this.costMs);
        return generateService(input, variant);
      },
      sources: [],
      server: "server-1",
      admit: () => undefined,
      visibleTo: () => this.visible,
    });
    if (isStarted) this.discovery.start();
  }

  /** The catalog is whole: one service, at these addresses. */
  async serve(...addresses: readonly string[]): Promise<void> {
    this.source.sink.set({
      services: [serviceOf("web"), serviceOf("db", 5432)],
      endpoints: [endpointsOf("web", ...addresses)],
    });
    this.source.sink.synced();
    await this.discovery.catalog.whenSynced();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.discovery.stop("the test is over");
  }

  client(userAgentName = "envoy"): Client {
    return new Client(this.discovery, this.timers, userAgentName);
  }

  metric(name: string): string | undefined {
    return this.metrics.expose().split("\n")
      .find((line) => line.startsWith(`tunnel_server_discovery_${name} `))
      ?.split(" ")[1];
  }

  /** So many changes of one endpoint in a second, for so long. */
  flap(perSecond: number, seconds: number): void {
    for (let index = 0; index < perSecond * seconds; index++) {
      const port = 1 + index % 60_000;
      const endpoints = [endpointsOf("web", `10.0.0.1:${port}`)];
      this.source.sink.add({ endpoints });
      this.timers.advance(1_000 / perSecond);
    }
  }
}

/** A client of clusters and of one service's endpoints. */
class Client {
  readonly call = new FakeServerCall();
  /** When what came, by kind. */
  readonly heardMs: Record<string, number[]> = {};
  /** Whether it acknowledges, as honest clients do. */
  isHonest = true;

  constructor(
    discovery: Discovery,
    timers: FakeTimers,
    readonly userAgentName: string,
  ) {
    this.call.onSent = (message) => {
      const { typeUrl = "", nonce = "", versionInfo = "" } =
        DiscoveryResponseMessage
          .decode(message);
      (this.heardMs[typeUrl] ??= []).push(timers.now());
      if (!this.isHonest) return;
      // Not within the call: real ones answer later.
      timers.after(1, () => this.say(typeUrl, nonce, versionInfo));
    };
    this.call.begin(discovery.methods(ARRIVAL)[ADS_PATHS.sotw]!);
    this.say(TYPE_URLS.cluster);
    this.say(TYPE_URLS.endpoints);
  }

  say(typeUrl: string, responseNonce = "", versionInfo = ""): void {
    const names = typeUrl === TYPE_URLS.endpoints ? [WEB] : [];
    this.call.receive(DiscoveryRequestMessage.encode({
      node: { id: "client", userAgentName: this.userAgentName },
      typeUrl,
      resourceNames: names,
      responseNonce,
      versionInfo,
    }));
  }

  received(kind: ResourceKind): readonly number[] {
    return this.heardMs[TYPE_URLS[kind]] ?? [];
  }
}

Deno.test("what takes a slice goes on in the next, and a client that left receives nothing", async () => {
  for (const leaves of [false, true]) {
    await using rig = new Rig();
    await rig.serve("10.0.0.1:1");
    const client = rig.client();
    rig.timers.advance(1_000);
    client.isHonest = false;
    const { onSent } = client.call;
    client.call.onSent = (message) => {
      onSent(message);
      rig.timers.advance(SLICE_MS);
    };
    const received = () => [
      client.received("cluster").length,
      client.received("endpoints").length,
    ];
    const [clusters = 0, endpoints = 0] = received();
    rig.source.sink.set({
      services: [serviceOf("web", 80, { policy: { balance: "random" } })],
      endpoints: [endpointsOf("web", "10.0.0.2:1")],
    });
    assertEquals(received(), [clusters + 1, endpoints]);
    if (leaves) client.call.cancel();
    rig.timers.advance(1);
    assertEquals(
      client.received("endpoints").length - endpoints,
      leaves ? 0 : 1,
    );
  }
});

Deno.test("a client of a flapping service receives its changes once per window", async () => {
  await using rig = new Rig();
  await rig.serve("10.0.0.1:1");
  const clients = [rig.client(), rig.client(), rig.client()];
  rig.timers.advance(5_000);
  for (const client of clients) client.heardMs[TYPE_URLS.endpoints] = [];
  rig.flap(100, 60);
  for (const client of clients) {
    const received = client.received("endpoints");
    // Windows of 50, 100, 200, 400, 800 ms, then of a second each.
    assert(
      received.length >= 58 && received.length <= 65,
      `${received.length}`,
    );
    const gaps = received.slice(1).map((at, index) => at - received[index]!);
    assert(Math.min(...gaps) >= 50, `${gaps}`);
    assertEquals(client.received("cluster").length, 1);
  }
  assertEquals(rig.metric('rejects_total{type="endpoints"}'), "0");
});

Deno.test("a client that never answers receives a response every ten seconds at most", async () => {
  await using rig = new Rig();
  await rig.serve("10.0.0.1:1");
  const client = rig.client();
  client.isHonest = false;
  rig.timers.advance(100);
  rig.flap(100, 60);
  const received = client.received("endpoints");
  assert(received.length >= 5 && received.length <= 8, `${received.length}`);
});

Deno.test("a client that takes nothing costs one response, and is given up", async () => {
  await using rig = new Rig();
  await rig.serve("10.0.0.1:1");
  const stuck = rig.client();
  const lively = rig.client();
  rig.timers.advance(1_000);
  stuck.call.isTaking = false;
  rig.flap(10, 30);
  const kept = stuck.call.keptBytes;
  const { length } = stuck.call.messages;
  rig.flap(10, 25);
  assertEquals(stuck.call.keptBytes, kept);
  assertEquals(stuck.call.messages.length, length);
  assertEquals(stuck.call.status, undefined);
  rig.timers.advance(STALLED_MS - 50_000 + 2 * TICK_MS);
  assertEquals(stuck.call.status?.code, StatusCode.RESOURCE_EXHAUSTED);
  assertMatch(stuck.call.status!.message, /took nothing .* for 60 s/);
  assertEquals(stuck.call.wasAborted, true);
  assertEquals(lively.call.status, undefined);
  assert(lively.received("endpoints").length > 50);
  assertEquals(rig.metric("stalled_clients_reset_total"), "1");
  assertEquals(rig.discovery.streams.size, 1);
});

Deno.test("a client that reads again receives what is true then", async () => {
  await using rig = new Rig();
  await rig.serve("10.0.0.1:1");
  const client = rig.client();
  rig.timers.advance(1_000);
  client.call.isTaking = false;
  rig.flap(10, 20);
  const { length } = client.call.messages;
  client.call.take();
  rig.timers.advance(15_000);
  const last = DiscoveryResponseMessage.decode(client.call.messages.at(-1)!);
  assertEquals(client.call.messages.length, length + 1);
  assertEquals(last.typeUrl, TYPE_URLS.endpoints);
});

Deno.test("a client that leaves while it waits for its turn is left alone", async () => {
  await using rig = new Rig();
  await rig.serve("10.0.0.1:1");
  const clients = Array.from({ length: 3 }, () => rig.client());
  rig.timers.advance(1_000);
  // The first one's turn is long, and the second one goes meanwhile.
  clients[0]!.call.onSent = () => {
    rig.timers.advance(50);
    clients[1]!.call.cancel();
  };
  const before = clients.map(({ call }) => call.messages.length);
  rig.source.sink.add({ endpoints: [endpointsOf("web", "10.0.0.2:1")] });
  rig.timers.advance(1_000);
  assertEquals(
    clients.map(({ call }, index) => call.messages.length - before[index]!),
    [1, 0, 1],
  );
});

Deno.test("a client sees at once what rules let it see", async () => {
  await using rig = new Rig();
  rig.visible = { id: "web", sees: (service) => service === "default/web" };
  await rig.serve("10.0.0.1:1");
  const client = rig.client();
  rig.timers.advance(2_000);
  const clusters = () =>
    client.call.messages.map((message) =>
      DiscoveryResponseMessage.decode(message)
    )
      .findLast(({ typeUrl }) => typeUrl === TYPE_URLS.cluster)
      ?.resources?.length ?? 0;
  assertEquals(clusters(), 1);
  rig.visible = SEES_EVERYTHING;
  rig.discovery.reconsider();
  rig.timers.advance(2_000);
  assertEquals(clusters(), 2);
  const { length } = client.call.messages;
  rig.discovery.reconsider();
  rig.timers.advance(2_000);
  assertEquals(client.call.messages.length, length);
});

Deno.test("there are so many streams and no more", async () => {
  await using rig = new Rig();
  await rig.serve("10.0.0.1:1");
  const method = rig.discovery.methods(ARRIVAL)[ADS_PATHS.sotw]!;
  const calls = Array.from(
    { length: DISCOVERY_STREAMS_MAX },
    () => new FakeServerCall(),
  );
  for (const call of calls) call.begin(method);
  const late = new FakeServerCall();
  late.begin(method);
  assertEquals(late.status?.code, StatusCode.RESOURCE_EXHAUSTED);
  calls[0]!.cancel();
  const next = new FakeServerCall();
  next.begin(method);
  assertEquals(next.status, undefined);
  await rig.discovery.stop("the test is over");
  assertEquals(next.status, {
    code: StatusCode.UNAVAILABLE,
    message: "the test is over",
  });
});

Deno.test("who comes while the server stops is sent elsewhere", async () => {
  await using rig = new Rig();
  await rig.serve("10.0.0.1:1");
  const client = rig.client();
  rig.timers.advance(100);
  rig.discovery.drain("going");
  assertEquals(client.call.status, {
    code: StatusCode.UNAVAILABLE,
    message: "going",
  });
  const late = new FakeServerCall();
  late.begin(rig.discovery.methods(ARRIVAL)[ADS_PATHS.sotw]!);
  assertEquals(late.status?.code, StatusCode.UNAVAILABLE);
  rig.source.sink.add({ endpoints: [endpointsOf("web", "10.0.0.9:1")] });
  await rig.discovery.stop("gone");
  assertEquals(rig.timers.pendingCount, 0);
});

Deno.test("a client that comes before the start waits for the sources, too", async () => {
  await using rig = new Rig(false);
  const client = rig.client();
  assertEquals(client.call.status, undefined);
  rig.discovery.start();
  await rig.serve("10.0.0.1:1");
  rig.timers.advance(100);
  assertEquals(client.call.status, undefined);
  assert(Object.keys(client.heardMs).length > 0);
  await rig.discovery.stop("gone");
});

Deno.test("who waits too long for sources is sent elsewhere, and let in later", async () => {
  await using rig = new Rig();
  const client = rig.client();
  rig.timers.advance(CATALOG_WAIT_MS - 1);
  assertEquals(client.call.status, undefined);
  rig.source.sink.failed("nobody answers");
  rig.timers.advance(1);
  const status = {
    code: StatusCode.UNAVAILABLE,
    message: "server has not read its catalog (source script: nobody answers)",
  };
  assertEquals(client.call.status, status);
  assertEquals(rig.discovery.problem, status.message);
  assertEquals(rig.client().call.status, status);
  assertEquals(rig.log.matching(/sent to other servers/).length, 1);
  await rig.serve("10.0.0.1:1");
  assertEquals(rig.discovery.problem, undefined);
  const late = rig.client();
  rig.timers.advance(100);
  assertEquals(late.received("cluster").length, 1);
  // Whatever becomes of the source, who is served stays.
  rig.source.sink.failed("it went");
  rig.timers.advance(CATALOG_WAIT_MS);
  assertEquals([late.call.status, rig.discovery.problem], [
    undefined,
    undefined,
  ]);
});

Deno.test("clients receive the server's name", async () => {
  await using rig = new Rig();
  await rig.serve("10.0.0.1:1");
  const { call } = rig.client();
  rig.timers.advance(100);
  const { controlPlane } = DiscoveryResponseMessage.decode(call.messages[0]!);
  assertEquals(controlPlane, { identifier: "server-1" });
});

Deno.test("types that are not served are logged, once for a stream", async () => {
  await using rig = new Rig();
  await rig.serve("10.0.0.1:1");
  const client = rig.client();
  client.say("type.googleapis.com/a.Secret");
  client.say("type.googleapis.com/a.Runtime");
  assertEquals(
    rig.log.matching(/not served here/).map(({ message }) => message),
    [
      "a discovery client asks for what is not served here and may wait for " +
      'it: "type.googleapis.com/a.Secret"',
    ],
  );
});

Deno.test("a view that takes long is made in slices, for all who wait for it", async () => {
  await using rig = new Rig();
  rig.source.sink.set({
    services: Array.from({ length: 100 }, (_, index) => serviceOf(`s${index}`)),
  });
  rig.source.sink.synced();
  await rig.discovery.catalog.whenSynced();
  rig.costMs = 1;
  const startMs = rig.timers.now();
  const clients = [rig.client(), rig.client()];
  assert(rig.timers.now() - startMs <= 2 * SLICE_MS);
  assertEquals(clients.map((client) => client.received("cluster")), [[], []]);
  for (let turn = 0; turn < 100; turn++) rig.timers.advance(0);
  rig.timers.advance(10);
  assertEquals(clients.map((client) => client.received("cluster").length), [
    1,
    1,
  ]);
  assert(rig.timers.now() - startMs < 200);
  // The first push of a client is no change that it received late.
  assertMatch(
    rig.metrics.expose(),
    /discovery_convergence_seconds_bucket\{le="0.25"\} 2\n/,
  );
});

Deno.test("a first view that takes long holds up no change of others, and has it", async () => {
  await using rig = new Rig();
  const services = Array.from(
    { length: 200 },
    (_, index) => serviceOf(`s${index}`, 1_000 + index),
  );
  rig.source.sink.set({
    services: [serviceOf("web"), ...services],
    endpoints: [endpointsOf("web", "10.0.0.1:1")],
  });
  rig.source.sink.synced();
  await rig.discovery.catalog.whenSynced();
  const known = rig.client();
  rig.timers.advance(5_000);
  rig.costMs = 1;
  const late = rig.client("gRPC");
  assertEquals(rig.discovery.views.groups.length, 2);
  const changedMs = rig.timers.now();
  rig.source.sink.add({ endpoints: [endpointsOf("web", "10.0.0.2:1")] });
  rig.timers.advance(0);
  assertEquals(known.received("endpoints").length, 2);
  assert(rig.timers.now() - changedMs <= 2 * SLICE_MS);
  assertEquals(late.received("cluster"), []);
  // Who scrapes metrics meanwhile waits for nothing either.
  const scrapedMs = rig.timers.now();
  rig.metrics.expose();
  assertEquals(rig.timers.now(), scrapedMs);

  for (let turn = 0; turn < 200; turn++) rig.timers.advance(0);
  rig.timers.advance(10);
  const reported = late.call.messages.map((one) =>
    DiscoveryResponseMessage.decode(one)
  );
  assertEquals(reported.map(({ typeUrl }) => typeUrl), [
    TYPE_URLS.cluster,
    TYPE_URLS.endpoints,
  ]);
  assertEquals(reported[0]!.resources!.length, 201);
  const text = new TextDecoder().decode(reported[1]!.resources![0]!.value);
  assert(text.includes("10.0.0.2"), text);
});
