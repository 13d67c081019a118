import { assertEquals, assertMatch } from "@std/assert";
import {
  keyOf,
  type Service,
  type ServiceEndpoints,
} from "../../catalog/model/model.ts";
import { messageOf } from "../../catalog/service_message.ts";
import { resourceOf } from "../../discovery/generate/service_resources.ts";
import { plainUpstream } from "../../../net/channel/server_upstream.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import type { DiscoveryMode } from "../../../proto/xds/discovery.ts";
import type { Resource } from "../../../proto/xds/resource.ts";
import { encodeAny } from "../../../proto/xds/any.ts";
import { Listener, TunnelService } from "../../../proto/xds/xds_messages.ts";
import { endpoints, service } from "../../../tests/support/rigs/proxy_rig.ts";
import { RecordedSink } from "../../../tests/support/watch/recorded_sink.ts";
import {
  ScriptedAds,
  type ScriptedAdsCall,
} from "../../../tests/support/xds/scripted_ads.ts";
import { AdsSource, proxyNode } from "./ads_source.ts";

/** A source that follows a scripted server. */
class Rig implements AsyncDisposable {
  readonly server: ScriptedAds;
  readonly sink = new RecordedSink();
  readonly source: AdsSource;

  constructor({ mode = "delta" as DiscoveryMode, port = 0 } = {}) {
    this.server = new ScriptedAds(port);
    this.source = new AdsSource({
      upstream: plainUpstream([this.server.address]),
      mode,
      node: proxyNode("n1", "z1"),
      timers: systemTimers,
      random: () => 0,
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

/** As a server of ours tells them. */
function resourcesOf(
  services: readonly Service[],
  lists: readonly ServiceEndpoints[],
): readonly Resource[] {
  return services.map((service) => {
    const list = lists.find((each) => each.service === keyOf(service));
    return resourceOf(
      "service",
      messageOf({ service, endpoints: list?.endpoints ?? [] }),
    );
  });
}

/** What no generator of ours makes. */
function written(message: TunnelService & { name: string }): Resource {
  const any = encodeAny(TunnelService, message);
  return { kind: "service", name: message.name, version: "1", any };
}

/** Answers, and gives what the client says to that. */
async function tell(
  call: ScriptedAdsCall,
  version: string,
  resources: readonly Resource[],
  removed: readonly string[] = [],
) {
  const kind = "service";
  const nonce = call.answer({ kind, version, resources, removed });
  while (true) {
    const request = await call.next(kind);
    if (request.responseNonce === nonce) return request;
  }
}

for (const mode of ["sotw", "delta"] as const) {
  Deno.test(`${mode}: the catalog comes out of discovery as it went in`, async () => {
    await using rig = new Rig({ mode });
    const call = await rig.server.next();
    const { node } = await call.next("service");
    assertEquals([node?.id, node?.userAgentName], ["n1", "tunnel"]);
    assertEquals(node?.locality?.zone, "z1");
    const web = endpoints("web", [80, 81]);
    const synced = rig.sink.next(/^synced$/);
    await tell(call, "1", resourcesOf([WEB, FULL], [web, FULL_ENDPOINTS]));
    await synced;
    const { services, endpoints: lists } = rig.sink.entries;
    assertEquals([...services.values()], [WEB, FULL]);
    assertEquals(lists.get("default/web"), web.endpoints);
    assertEquals(lists.get("shop/db"), FULL_ENDPOINTS.endpoints);
    assertEquals(rig.sink.refusals, []);
    assertEquals(rig.source.status.state, "open");
    assertEquals(rig.source.status.kinds.service?.version, "1");
    const moved = { ...WEB, ports: [{ ...WEB.ports[0]!, port: 81 }] };
    await tell(call, "2", resourcesOf([moved], [web]), ["shop/db"]);
    assertEquals([...services.values()], [moved]);
    assertEquals([...lists.keys()], ["default/web"]);
  });
}

Deno.test("what cannot be used is refused by name, and the rest is taken", async () => {
  await using rig = new Rig();
  const call = await rig.server.next();
  const other = service("other");
  const good = resourcesOf([WEB, other], [endpoints("web", [80])]);
  const port = { ...WEB.ports[0]!, port: 70_000 };
  const typed = encodeAny(Listener, { name: "typed" });
  const bad: readonly Resource[] = [
    written({ ...WEB, name: "default/bad", ports: [port] }),
    { ...written({ name: "shop/db" }), name: "shop/db2" },
    { kind: "service", name: "typed", version: "1", any: typed },
  ];
  const { errorDetail } = await tell(call, "1", [...good, ...bad]);
  assertEquals(errorDetail?.code, 3);
  assertEquals(errorDetail!.message!.split("; "), [
    'default/bad: default/bad: port "" is 70000, 1 to 65535 is wanted',
    "shop/db2: it is the service shop/db",
    "typed: its type is type.googleapis.com/envoy.config.listener.v3.Listener, " +
    "wanted type.googleapis.com/tunnel.v1.Service",
  ]);
  assertEquals(rig.keys, ["default/web", "default/other"]);
  assertMatch(rig.sink.refusals[0]!, /\(service of discovery\)$/);
  const { refusal, refused } = rig.source.status.kinds.service!;
  assertEquals([refused, refusal?.message], [1, errorDetail?.message]);
  // Said again, it is no news.
  await tell(call, "1", [...good, ...bad]);
  assertEquals(rig.sink.refusals.length, 1);
  await tell(call, "2", good);
  assertEquals(rig.source.status.kinds.service?.refusal, undefined);
});

Deno.test("a server that goes changes nothing, and is asked for what differs", async () => {
  await using rig = new Rig();
  const call = await rig.server.next();
  const all = resourcesOf([WEB], [endpoints("web", [80])]);
  await tell(call, "1", all);
  const failed = rig.sink.next(
    /^failed: Cannot follow discovery: lost the server/,
  );
  rig.server.cut();
  await failed;
  assertEquals(rig.source.status.state, "waiting");
  assertMatch(rig.source.status.problem!, /^lost the server/);
  assertEquals(rig.keys, ["default/web"]);
  const again = await rig.server.next();
  const { version } = all[0]!;
  const request = await again.next("service");
  assertEquals(request.initialResourceVersions, { "default/web": version });
  const synced = rig.sink.next(/^synced$/);
  await tell(again, "1", []);
  await synced;
  assertEquals(rig.keys, ["default/web"]);
});
