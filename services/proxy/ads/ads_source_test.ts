import { assertEquals, assertMatch } from "@std/assert";
import {
  clusterMetadata,
  TUNNEL_METADATA,
} from "../../catalog/discovery_metadata.ts";
import type { Service } from "../../catalog/model/model.ts";
import { plainUpstream } from "../../../net/channel/server_upstream.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import type { DiscoveryMode } from "../../../proto/xds/discovery.ts";
import type { Resource, ResourceKind } from "../../../proto/xds/resource.ts";
import { structOf } from "../../../proto/xds/struct_data.ts";
import { encodeAny } from "../../../proto/xds/any.ts";
import {
  Cluster,
  ClusterLoadAssignment,
  Listener,
} from "../../../proto/xds/xds_messages.ts";
import { endpoints, service } from "../../../tests/support/rigs/proxy_rig.ts";
import { proxyResources } from "../../../tests/support/xds/proxy_resources.ts";
import { RecordedLog } from "../../../tests/support/watch/recorded_log.ts";
import { RecordedSink } from "../../../tests/support/watch/recorded_sink.ts";
import {
  ScriptedAds,
  type ScriptedAdsCall,
} from "../../../tests/support/xds/scripted_ads.ts";
import { AdsSource } from "./ads_source.ts";
import { LastKnownGood } from "./last_known_good.ts";
import { proxyNode } from "./proxy_node.ts";

/** A source that follows a scripted server. */
class Rig implements AsyncDisposable {
  readonly server: ScriptedAds;
  readonly sink = new RecordedSink();
  readonly log = new RecordedLog();
  readonly source: AdsSource;

  constructor(
    { mode = "delta" as DiscoveryMode, port = 0, file = "" } = {},
  ) {
    this.server = new ScriptedAds(port);
    const { log } = this;
    const timers = systemTimers;
    this.source = new AdsSource({
      upstream: plainUpstream([this.server.address]),
      mode,
      node: proxyNode("n1", "z1"),
      timers,
      random: () => 0,
      log,
      ...file === ""
        ? {}
        : { kept: new LastKnownGood({ path: file, node: "n1", timers, log }) },
    });
    this.source.start(this.sink);
  }

  get keys(): readonly string[] {
    return [...this.sink.entries.services.keys()];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.source.stop();
    this.server[Symbol.dispose]();
  }
}

const WEB = service("web");
const FULL: Service = {
  namespace: "shop",
  name: "db",
  ports: [
    { name: "sql", port: 5432, protocol: "tcp", listen: { port: 15432 } },
    { name: "probe", port: 53, protocol: "udp", appProtocol: "dns" },
  ],
  affinity: { kind: "client-ip", ttlMs: 1_000 },
  policy: { drainMs: 7, zoneAware: true },
};
const FULL_ENDPOINTS = {
  service: "shop/db",
  endpoints: [
    {
      ...endpoints("x", [{ sql: 1, probe: 2 }]).endpoints[0]!,
      address: "db.internal",
      via: {
        kind: "agent" as const,
        agent: { key: "host" as const, value: "n7" },
      },
      node: "n7",
      zone: "z",
      weight: 9,
      state: "serving" as const,
    },
    endpoints("x", [{ probe: 3 }]).endpoints[0]!,
  ],
};

/** What no generator of ours makes. */
function clusterOf(name: string, service: Service, port: string): Resource {
  const form = structOf(clusterMetadata(service, port));
  const metadata = { filterMetadata: { [TUNNEL_METADATA]: form } };
  const any = encodeAny(Cluster, { name, type: 3, metadata });
  return { kind: "cluster", name, version: "1", any };
}

/** Answers a kind, and gives what the client says to that. */
async function tell(
  call: ScriptedAdsCall,
  kind: ResourceKind,
  version: string,
  resources: readonly Resource[],
  removed: readonly string[] = [],
) {
  const nonce = call.answer({ kind, version, resources, removed });
  while (true) {
    const request = await call.next(kind);
    if (request.responseNonce === nonce) return request;
  }
}

/** Tells all of the kinds, in the order of servers. */
async function tellAll(
  call: ScriptedAdsCall,
  version: string,
  all: ReturnType<typeof proxyResources>,
): Promise<void> {
  for (const kind of ["cluster", "endpoints", "listener"] as const) {
    if (kind !== "endpoints" || all[kind].length > 0) {
      await tell(call, kind, version, all[kind]);
    }
  }
}

for (const mode of ["sotw", "delta"] as const) {
  Deno.test(`${mode}: the catalog comes out of discovery as it went in`, async () => {
    await using rig = new Rig({ mode });
    const call = await rig.server.next();
    const { node } = await call.next("cluster");
    assertEquals([node?.id, node?.userAgentName], ["n1", "tunnel"]);
    assertEquals(node?.locality?.zone, "z1");
    const web = endpoints("web", [80, 81]);
    const synced = rig.sink.next(/^synced$/);
    await tellAll(
      call,
      "1",
      proxyResources([WEB, FULL], [web, FULL_ENDPOINTS]),
    );
    await synced;
    const { services, endpoints: lists } = rig.sink.entries;
    assertEquals([...services.values()], [WEB, FULL]);
    assertEquals(lists.get("default/web"), web.endpoints);
    assertEquals(lists.get("shop/db"), FULL_ENDPOINTS.endpoints);
    assertEquals(rig.sink.refusals, []);
    assertEquals(rig.source.status.state, "open");
    assertEquals(rig.source.status.kinds.cluster?.version, "1");
  });

  Deno.test(`${mode}: services appear whole, change whole, and go`, async () => {
    await using rig = new Rig({ mode });
    const call = await rig.server.next();
    const one = proxyResources([WEB], [endpoints("web", [80])]);
    await tell(call, "cluster", "1", one.cluster);
    await tell(call, "listener", "1", one.listener);
    assertEquals(rig.keys, []);
    assertEquals(rig.source.status.waiting, [
      { service: "default/web", for: "the endpoints of default/web:80" },
    ]);
    await tell(call, "endpoints", "1", one.endpoints);
    assertEquals(rig.keys, ["default/web"]);
    const moved = { ...WEB, ports: [{ ...WEB.ports[0]!, port: 81 }] };
    const next = proxyResources([moved], [endpoints("web", [9])]);
    // Make before break: the old cluster lingers.
    await tell(call, "cluster", "2", [...one.cluster, ...next.cluster]);
    await tell(call, "endpoints", "2", next.endpoints);
    assertEquals([...rig.sink.entries.services.values()], [WEB]);
    await tell(call, "listener", "2", next.listener, ["default/web:80"]);
    assertEquals([...rig.sink.entries.services.values()], [moved]);
    await tell(call, "cluster", "3", next.cluster, ["default/web:80"]);
    assertEquals([...rig.sink.entries.services.values()], [moved]);
    await tell(call, "listener", "3", [], ["default/web:81"]);
    assertEquals(rig.keys, []);
    await tell(call, "cluster", "4", [], ["default/web:81"]);
    assertEquals(rig.sink.entries.endpoints.size, 0);
  });
}

Deno.test("what cannot be used is refused by name, and the rest is taken", async () => {
  await using rig = new Rig();
  const call = await rig.server.next();
  const other = service("other");
  const all = proxyResources([WEB, other], [
    endpoints("web", [80]),
    endpoints("other", [81]),
  ]);
  const foreign = { name: "foreign", type: 3 };
  const clusters: readonly Resource[] = [
    ...all.cluster,
    {
      ...{ kind: "cluster", name: "foreign", version: "1" },
      any: encodeAny(Cluster, foreign),
    },
    {
      ...{ kind: "cluster", name: "typed", version: "1" },
      any: encodeAny(Listener, { name: "typed" }),
    },
  ];
  const { errorDetail } = await tell(call, "cluster", "1", clusters);
  assertEquals(errorDetail?.code, 3);
  assertMatch(
    errorDetail!.message!,
    /^foreign: it has no metadata of a tunnel server; typed: its type is type.googleapis.com\/.*Listener, wanted /,
  );
  await tell(call, "listener", "1", all.listener);
  await tell(call, "endpoints", "1", all.endpoints);
  assertEquals(rig.keys, ["default/web", "default/other"]);
  assertMatch(rig.sink.refusals[0]!, /\(cluster of discovery\)$/);
  const { refusal, refused } = rig.source.status.kinds.cluster!;
  assertEquals([refused, refusal?.message], [1, errorDetail?.message]);
  // Said again, it is no news.
  await tell(call, "cluster", "1", clusters);
  assertEquals(rig.sink.refusals.length, 1);
  await tell(call, "cluster", "2", all.cluster);
  assertEquals(rig.source.status.kinds.cluster?.refusal, undefined);
});

Deno.test("services and endpoints that no catalog may hold are refused", async () => {
  await using rig = new Rig();
  const call = await rig.server.next();
  const bad = service("web", { ports: [{ ...WEB.ports[0]!, port: 70_000 }] });
  const { errorDetail } = await tell(call, "cluster", "1", [
    clusterOf("default/web:70000", bad, ""),
    clusterOf("shop/db:1", FULL, "sql"),
    clusterOf("shop/db:5432", FULL, "sql"),
  ]);
  assertEquals(errorDetail!.message!.split("; "), [
    'default/web:70000: default/web: port "" is 70000, 1 to 65535 is wanted',
    'shop/db:1: it is of the port "sql" of shop/db, wanted the name shop/db:5432',
  ]);
  const assignment = {
    clusterName: "shop/db:5432",
    endpoints: [{
      lbEndpoints: [{
        endpoint: { address: { socketAddress: { address: "a b" } } },
      }],
    }],
  };
  const assigned = await tell(call, "endpoints", "1", [{
    ...{ kind: "endpoints", name: "shop/db:5432", version: "1" },
    any: encodeAny(ClusterLoadAssignment, assignment),
  }]);
  assertMatch(
    assigned.errorDetail!.message!,
    /^shop\/db:5432: shop\/db: "a b" is no address/,
  );
});

Deno.test("a server that goes changes nothing, and is asked for what differs", async () => {
  await using rig = new Rig();
  const call = await rig.server.next();
  const all = proxyResources([WEB], [endpoints("web", [80])]);
  await tellAll(call, "1", all);
  const failed = rig.sink.next(
    /^failed: Cannot follow discovery: lost the server/,
  );
  rig.server.cut();
  await failed;
  assertEquals(rig.source.status.state, "waiting");
  assertMatch(rig.source.status.problem!, /^lost the server/);
  assertEquals(rig.keys, ["default/web"]);
  const again = await rig.server.next();
  const { version } = all.cluster[0]!;
  const request = await again.next("cluster");
  assertEquals(request.initialResourceVersions, { "default/web:80": version });
  const synced = rig.sink.next(/^synced$/);
  await tell(again, "cluster", "1", []);
  await synced;
  assertEquals(rig.keys, ["default/web"]);
});

Deno.test("a proxy starts with what the last one was told, until a server says otherwise", async () => {
  const folder = await Deno.makeTempDir();
  const file = `${folder}/state`;
  const other = service("other");
  {
    await using rig = new Rig({ file });
    const call = await rig.server.next();
    await tellAll(
      call,
      "1",
      proxyResources([WEB, other], [
        endpoints("web", [80]),
        endpoints("other", [81]),
      ]),
    );
    await rig.source.stop();
  }
  for (const mode of ["sotw", "delta"] as const) {
    // Each mode on a copy of its own.
    await Deno.copyFile(file, `${file}-${mode}`);
    await using second = new Rig({ mode, file: `${file}-${mode}` });
    await second.sink.next(/^synced$/);
    assertEquals(second.keys, ["default/web", "default/other"]);
    assertMatch(second.source.status.recalledFrom!, /^\d{4}-/);
    const call = await second.server.next();
    const request = await call.next("cluster");
    if (mode === "delta") {
      const names = { "default/web:80": "", "default/other:80": "" };
      assertEquals(request.initialResourceVersions, names);
    }
    const now = proxyResources([WEB], [endpoints("web", [90])]);
    await tell(call, "cluster", "2", now.cluster, ["default/other:80"]);
    assertEquals(second.keys, ["default/web"]);
    await tell(call, "endpoints", "2", now.endpoints);
    await tell(call, "listener", "2", now.listener, ["default/other:80"]);
    const [endpoint] = second.sink.entries.endpoints.get("default/web")!;
    assertEquals(endpoint!.ports[0]!.port, 90);
    assertEquals(second.source.status.recalledFrom, undefined);
  }
  await Deno.remove(folder, { recursive: true });
});
