import { assertEquals, assertRejects } from "@std/assert";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { StatusCode } from "../../proto/grpc/status.ts";
import type { DiscoveryNode } from "../../proto/xds/discovery.ts";
import { DiscoveryRig } from "../../tests/support/xds/discovery_rig.ts";
import {
  endpointsOf,
  serviceOf,
} from "../../tests/support/watch/scripted_source.ts";
import { ScriptedAds } from "../../tests/support/xds/scripted_ads.ts";
import { eventually } from "../../tests/support/rigs/tunnel_harness.ts";
import { plainUpstream } from "../../net/channel/server_upstream.ts";
import {
  parseCount,
  parseExpectation,
} from "../../services/ads/adsc/conditions.ts";
import {
  type SubscriberProfile,
  SubscriberRefusedError,
  SubscriberTimeoutError,
  userAgentOf,
  type Want,
} from "../../services/ads/adsc/subscriber.ts";
import { Fleet, type FleetOptions } from "./fleet.ts";
import { resourceData } from "../../proto/xds/resource_data.ts";
import { nextTurn } from "../../tests/support/watch/event_loop.ts";

const PART = {
  services: [
    serviceOf("echo", 80, {
      ports: [{ name: "", port: 80, protocol: "tcp", appProtocol: "grpc" }],
    }),
    serviceOf("db", 5432),
  ],
  endpoints: [endpointsOf("echo", "10.0.0.1:8080", "10.0.0.2:8080")],
};

function node(form: SubscriberProfile, id: string): DiscoveryNode {
  return {
    id,
    cluster: "",
    metadata: {},
    locality: { region: "", zone: "", subZone: "" },
    userAgentName: userAgentOf(form),
    userAgentVersion: "1",
    clientFeatures: [],
  };
}

/** Clients that end with the test. */
class Run implements AsyncDisposable {
  readonly fleet: Fleet;

  constructor(
    port: number,
    form: SubscriberProfile,
    { count = 1, ...more }: Partial<FleetOptions> & { count?: number } = {},
  ) {
    this.fleet = new Fleet({
      form,
      mode: "delta",
      nodes: Array.from({ length: count }, (_, i) => node(form, `n${i}`)),
      upstream: plainUpstream([{ host: "127.0.0.1", port }]),
      timers: systemTimers,
      random: Math.random,
      ...more,
    });
    this.fleet.start();
  }

  until(...conditions: readonly string[]): Promise<void> {
    const parsed = conditions.map((text) =>
      / |^$/.test(text) ? parseExpectation(text) : parseCount(text)
    );
    return this.fleet.until(parsed, 5_000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.fleet.stop();
  }
}

const BOTH = "endpoints default/echo:80=10.0.0.1:8080,10.0.0.2:8080";

for (const mode of ["sotw", "delta"] as const) {
  Deno.test(`${mode}: each form receives what it asks for, and what that needs`, async () => {
    await using rig = await DiscoveryRig.serving(PART);
    const all = ["clusters=2", "assignments=2", "listeners=2", BOTH];
    {
      await using run = new Run(rig.port, { kind: "proxy" }, { mode });
      await run.until(...all, "routes=0", "refused=0");
    }
    {
      await using run = new Run(rig.port, { kind: "envoy" }, { mode });
      await run.until(...all, "routes=1", "refused=0");
    }
    {
      const form = { kind: "grpc", names: ["echo"] } as const;
      await using run = new Run(rig.port, form, { mode });
      await run.until("listeners=1", "routes=1", "clusters=1", BOTH);
    }
    const wants: readonly Want[] = [
      { kind: "endpoints", isWildcard: false, names: ["default/echo:80"] },
    ];
    await using run = new Run(rig.port, { kind: "raw", wants }, { mode });
    await run.until("clusters=0", BOTH);
  });
}

Deno.test("what is not there is known, and what comes is seen", async () => {
  await using rig = await DiscoveryRig.serving(PART);
  const form = { kind: "grpc", names: ["echo", "none"] } as const;
  await using run = new Run(rig.port, form);
  await run.until("absent=1", "no listener none", BOTH);
  rig.source.sink.add({ services: [serviceOf("none")] });
  await run.until("absent=0", "listener none", "cluster default/none:80");
  const { clusters } = {
    clusters: run.fleet.clients[0]!.held("cluster"),
  };
  assertEquals([...clusters.keys()], ["default/echo:80", "default/none:80"]);
});

Deno.test("what does not come in time is named, with what is seen instead", async () => {
  await using rig = await DiscoveryRig.serving(PART);
  await using run = new Run(rig.port, { kind: "proxy" }, { count: 2 });
  await run.until("clusters=2");
  await assertRejects(
    () => run.fleet.until([parseCount("clusters>=3")], 20),
    SubscriberTimeoutError,
    "wanted clusters>=3, saw 2 clusters (client 1) after 20 ms",
  );
});

Deno.test("a server that refuses ends the waiting", async () => {
  using server = new ScriptedAds();
  await using run = new Run(server.port, { kind: "proxy" });
  const waiting = assertRejects(
    () => run.until(),
    SubscriberRefusedError,
    "PERMISSION_DENIED: not you",
  );
  const code = StatusCode.PERMISSION_DENIED;
  (await server.next()).finish({ code, message: "not you" });
  await waiting;
});

Deno.test("many clients are in sync, and receive a change, with figures", async () => {
  await using rig = await DiscoveryRig.serving(PART);
  const count = 150;
  await using run = new Run(rig.port, { kind: "proxy" }, { count });
  await run.until("clusters=2", BOTH);
  rig.source.sink.add({ endpoints: [endpointsOf("echo", "10.0.0.9:1")] });
  await run.until("endpoints default/echo:80=10.0.0.9:1");
  const { figures } = run.fleet;
  assertEquals([figures.clients, figures.synced.count], [count, count]);
  assertEquals([figures.streams, figures.refused], [count, 0]);
  const reported = figures.changes.filter(({ kind }) => kind === "endpoints");
  assertEquals(reported.at(-1)!.clients, count);
  assertEquals(reported.at(-1)!.spreadMs <= reported.at(-1)!.atMs, true);
});

Deno.test("on purpose a client refuses, and leaves", async () => {
  await using rig = await DiscoveryRig.serving(PART);
  {
    await using run = new Run(rig.port, { kind: "proxy" }, {
      faults: { nack: [{ kind: "cluster", name: "default/db:5432" }] },
    });
    await run.until("refused=1", "clusters=1", "no cluster default/db:5432");
    await eventually(
      "the server counts it",
      async () => await rig.metric('rejects_total{type="cluster"}') === 1,
    );
  }
  await using run = new Run(rig.port, { kind: "proxy" }, {
    faults: { reconnectMs: 20 },
  });
  await run.until("clusters=2");
  while (run.fleet.figures.streams < 3) {
    await run.until("clusters=2");
    await nextTurn();
  }
  await run.until("clusters=2", "refused=0");
});

Deno.test("resources are plain data, unpacked", async () => {
  await using rig = await DiscoveryRig.serving(PART);
  await using run = new Run(rig.port, { kind: "envoy" });
  await run.until("listeners=2");
  const [client] = run.fleet.clients;
  const { content } = client!.held("listener").get("default/db:5432")!;
  const text = JSON.stringify(resourceData(content.message));
  const data = JSON.parse(text);
  const [{ typedConfig }] = data.filterChains[0].filters;
  assertEquals(typedConfig.cluster, "default/db:5432");
  assertEquals(typedConfig["@type"].endsWith("TcpProxy"), true);
  await using proxy = new Run(rig.port, { kind: "proxy" });
  await proxy.until("clusters=2");
  const cluster = proxy.fleet.clients[0]!.held("cluster")
    .get("default/db:5432")!.content.message;
  const { metadata } = JSON.parse(JSON.stringify(resourceData(cluster)));
  assertEquals(metadata.filterMetadata.tunnel.service.name, "db");
});
