import {
  assert,
  assertEquals,
  assertMatch,
  assertStringIncludes,
} from "@std/assert";
import { StatusCode, statusName } from "../../proto/grpc/status.ts";
import { TYPE_URLS } from "../../proto/xds/resource.ts";
import { certificates } from "../support/certificates/certificates.ts";
import { DiscoveryRig } from "../support/xds/discovery_rig.ts";
import type { ClientDiff } from "../../services/discovery/status/client_answers.ts";
import {
  endpointOf,
  endpointsOf,
  serviceOf,
} from "../support/watch/scripted_source.ts";
import { eventually } from "../support/rigs/tunnel_harness.ts";
import {
  addressesIn,
  namesIn,
  type SotwProbe,
  type XdsProbe,
} from "../support/xds/xds_probe.ts";

const NODE = { id: "probe", userAgentName: "envoy" };
const WEB = "default/web:80";

/** Only reached through an agent, which Envoy has not asked for. */
const FAR = endpointOf("10.9.0.1:90", {
  via: { kind: "agent", agent: { key: "host", value: "edge-1" } },
});

const oneService = {
  services: [serviceOf("web")],
  endpoints: [endpointsOf("web", "10.0.0.1:8080")],
};

/** Takes a response and acknowledges it, as honest clients do. */
async function taken(
  stream: SotwProbe,
  kind: "cluster" | "endpoints",
  resourceNames: readonly string[] = [],
) {
  const response = await stream.next(kind);
  stream.send({
    typeUrl: TYPE_URLS[kind],
    versionInfo: response.versionInfo!,
    responseNonce: response.nonce!,
    resourceNames,
  });
  return response;
}

/** A client that has clusters and the endpoints of one. */
async function subscribed(probe: XdsProbe, node = NODE): Promise<SotwProbe> {
  const stream = probe.sotw();
  stream.send({ node, typeUrl: TYPE_URLS.cluster });
  await taken(stream, "cluster");
  stream.send({ typeUrl: TYPE_URLS.endpoints, resourceNames: [WEB] });
  await taken(stream, "endpoints", [WEB]);
  return stream;
}

Deno.test("each kind has a service of its own, too", async () => {
  await using rig = await DiscoveryRig.serving(oneService);
  const probe = await rig.plain();
  const paths = [
    ["cluster", "cluster.v3.ClusterDiscoveryService/StreamClusters"],
    ["endpoints", "endpoint.v3.EndpointDiscoveryService/StreamEndpoints"],
    ["listener", "listener.v3.ListenerDiscoveryService/StreamListeners"],
  ] as const;
  for (const [kind, path] of paths) {
    const stream = probe.sotw({}, `/envoy.service.${path}`);
    // A type URL says nothing there, and may be left out.
    stream.send({ node: NODE, resourceNames: [WEB] });
    const { typeUrl } = await stream.next();
    assertEquals(typeUrl, TYPE_URLS[kind]);
  }
  const stream = probe.sotw({}, `/envoy.service.${paths[0][1]}`);
  stream.send({ node: NODE, typeUrl: TYPE_URLS.listener });
  assertEquals((await stream.status).code, StatusCode.INVALID_ARGUMENT);
  const delta = probe.delta(
    {},
    "/envoy.service.route.v3.RouteDiscoveryService/DeltaRoutes",
  );
  delta.send({ node: NODE, resourceNamesSubscribe: ["nothing"] });
  assertEquals((await delta.next()).removedResources, ["nothing"]);
});

Deno.test("nobody is answered before the sources have synced, then everybody", async () => {
  await using rig = await DiscoveryRig.open();
  rig.source.sink.set({ services: [serviceOf("early")] });
  const probes = await Promise.all([1, 2, 3].map(() => rig.plain()));
  const streams = probes.map((probe) => probe.sotw());
  for (const stream of streams) {
    stream.send({ node: NODE, typeUrl: TYPE_URLS.cluster });
  }
  await eventually("all have joined", async () => {
    const { clients } = await rig.admin("/v1/discovery/sync") as {
      clients: unknown[];
    };
    return clients.length === streams.length;
  });
  rig.source.sink.set(oneService);
  for (const { responses } of streams) assertEquals(responses, []);
  rig.source.sink.synced();
  for (const stream of streams) {
    assertEquals(namesIn("cluster", await stream.next()), [WEB]);
  }
});

Deno.test("a server that has not read its catalog is not ready, and says why", async () => {
  await using rig = await DiscoveryRig.open();
  const { health } = rig.tunnel.server.addresses;
  const readiness = async () =>
    await (await fetch(`http://${health}/readyz`)).text();
  const sentence = "server has not read its catalog (source script: ";
  assertStringIncludes(
    await readiness(),
    `${sentence}it has not answered yet)`,
  );
  rig.source.sink.failed("refused");
  assertStringIncludes(await readiness(), `${sentence}refused)`);
  rig.source.sink.set(oneService);
  rig.source.sink.synced();
  await eventually("it is", async () => !(await readiness()).includes("read"));
});

Deno.test("a node is served on the agent port, by its certificate", async () => {
  await using rig = await DiscoveryRig.serving(oneService);
  const { client } = await certificates();
  const probe = await rig.tls(client);
  await subscribed(probe, { ...NODE, id: "node1" });
  await subscribed(probe, { ...NODE, id: "node1/envoy" });
  const relayed = probe.sotw({ "tunnel-relay": "1" });
  relayed.send({ node: { ...NODE, id: "any" }, typeUrl: TYPE_URLS.cluster });
  await relayed.next();
  const { clients } = await rig.admin("/v1/discovery/sync") as {
    clients: { client: string; node: string }[];
  };
  assertEquals(
    clients.map(({ client, node }) => [client, node]),
    [["node1", "node1"], ["node1/envoy", "node1"], ["node1~any", "node1"]],
  );
});

Deno.test("nobody else is served on the agent port, and no node for another", async () => {
  await using rig = await DiscoveryRig.serving(oneService);
  const { client } = await certificates();
  const refused = async (probe: XdsProbe, id: string) => {
    const stream = probe.sotw();
    stream.send({ node: { ...NODE, id }, typeUrl: TYPE_URLS.cluster });
    const { code, message } = await stream.status;
    assertEquals(stream.responses, []);
    return `${statusName(code)}: ${message}`;
  };
  assertMatch(
    await refused(await rig.tls(client), "node2"),
    /^PERMISSION_DENIED: Cannot serve node.id "node2": the certificate is for "node1"/,
  );
  assertMatch(
    await refused(await rig.tls(client), ""),
    /^INVALID_ARGUMENT: .*no node\.id/,
  );
  assertMatch(
    await refused(await rig.tls(), "node1"),
    /^UNAUTHENTICATED: Cannot admit this agent/,
  );
});

Deno.test("a server that stops sends its clients elsewhere", async () => {
  await using rig = await DiscoveryRig.serving(oneService);
  const { client } = await certificates();
  const streams = [
    await subscribed(await rig.plain()),
    await subscribed(await rig.tls(client), { ...NODE, id: "node1" }),
  ];
  rig.tunnel.server.shutdown();
  for (const stream of streams) {
    const { code, message } = await stream.status;
    assertEquals([code, message], [
      StatusCode.UNAVAILABLE,
      "the server is stopping",
    ]);
  }
  await rig.tunnel.server.finished;
  assertEquals(rig.source.isStopped, true);
});

Deno.test("the old stream of a client does not take the new one with it", async () => {
  await using rig = await DiscoveryRig.serving(oneService);
  const old = await rig.plain();
  await subscribed(old);
  const stream = await subscribed(await rig.plain());
  old[Symbol.dispose]();
  await eventually(
    "the old one is gone",
    async () => await rig.metric('clients{form="envoy",mode="sotw"}') === 1,
  );
  rig.source.sink.add({ endpoints: [endpointsOf("web", "10.0.0.9:1")] });
  assertEquals(addressesIn(await stream.next()), ["10.0.0.9:1"]);
});

Deno.test("what a client refuses is seen, counted, and not sent again", async () => {
  await using rig = await DiscoveryRig.serving(oneService);
  const stream = (await rig.plain()).sotw();
  stream.send({ node: NODE, typeUrl: TYPE_URLS.cluster });
  const { nonce } = await stream.next();
  const isLogged = rig.tunnel.log.until(/rejects a response/);
  stream.send({
    typeUrl: TYPE_URLS.cluster,
    responseNonce: nonce!,
    errorDetail: { code: 13, message: `${WEB}: no such thing` },
  });
  assertMatch((await isLogged).message, /default\/web:80: no such thing/);
  assertEquals(await rig.metric('rejects_total{type="cluster"}'), 1);
  const { name } = rig.tunnel.log.matching(/rejects a response/)
    .map(({ fields }) => ({ name: String(fields?.["client"]) }))[0]!;
  const byClient = `rejects_by_client_total{client="${name}",code="13"}`;
  assertEquals(await rig.metric(byClient), 1);
  const { clients } = await rig.admin("/v1/discovery/sync") as {
    clients: { kinds: { nacked: { message: string }; state: string }[] }[];
  };
  const [kind] = clients[0]!.kinds;
  assertEquals(kind!.nacked.message, `${WEB}: no such thing`);
  assertEquals(kind!.state, "refused");
  rig.source.sink.add({ services: [serviceOf("db", 5432)] });
  assert(namesIn("cluster", await stream.next()).includes("default/db:5432"));
});

Deno.test("what a client has and should have is reported name by name", async () => {
  await using rig = await DiscoveryRig.serving({
    services: [serviceOf("web"), serviceOf("far", 90)],
    endpoints: [
      endpointsOf("web", "10.0.0.1:8080"),
      { service: "default/far", endpoints: [FAR] },
    ],
  });
  const stream = await subscribed(await rig.plain());
  stream.send({ typeUrl: TYPE_URLS.route, resourceNames: ["nothing"] });
  rig.source.sink.add({ endpoints: [endpointsOf("web", "10.0.0.2:8080")] });
  await stream.next("endpoints");
  const { clients: [diff] } = await rig.admin(
    "/v1/discovery/diff?node=probe",
  ) as {
    clients: readonly ClientDiff[];
  };
  assertEquals(
    diff!.kinds.map(({ kind, resources }) =>
      resources.map(({ name, state }) => `${kind} ${name} ${state}`)
    ).flat(),
    [
      "cluster default/far:90 synced",
      `cluster ${WEB} synced`,
      `endpoints ${WEB} waiting`,
      "route nothing absent",
    ],
  );
  const [held] = diff!.kinds[1]!.resources;
  assert(held!.has !== undefined && held!.has !== held!.wants);
  assertEquals(diff!.unserved.map(({ service }) => service), ["default/far"]);
  const line = /default\/far is not served to Envoy: .*agent/;
  assertEquals(rig.tunnel.log.matching(line).length, 1);
  assertEquals(await rig.metric("unserved"), 1);
});

Deno.test("what a client should have is dumped in full", async () => {
  await using rig = await DiscoveryRig.serving(oneService);
  await subscribed(await rig.plain());
  const { clients: [dump] } = await rig.admin(
    "/v1/discovery/config?node=probe",
  ) as {
    clients: readonly {
      endpoints: readonly {
        resource: { "@type": string; clusterName: string };
      }[];
    }[];
  };
  const [{ resource } = { resource: undefined }] = dump!.endpoints;
  assertEquals(resource!["@type"], TYPE_URLS.endpoints);
  assertEquals(resource!.clusterName, WEB);
  const { endpoints } = await rig.admin("/v1/discovery/endpoints") as {
    endpoints: Record<string, readonly { address: string }[]>;
  };
  assertEquals(endpoints["default/web"]?.map(({ address }) => address), [
    "10.0.0.1",
  ]);
});
