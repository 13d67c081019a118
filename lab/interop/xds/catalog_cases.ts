/**
 * What a catalog can say of a service besides where it is, and what clients make
 * of it: routes, affinity, weights, other protocols, health.
 *
 * @module
 */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import type { DiscoveryServer } from "../../../tests/support/peers/discovery_server.ts";
import { Envoy } from "../../peers/envoy.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import {
  XDS_CLIENTS,
  XdsClient,
  type XdsClientName,
} from "../../peers/xds_client.ts";
import { eventually } from "../kube_case.ts";
import { Caller } from "./callers.ts";
import { HttpBackends, httpGet } from "./http_backends.ts";
import { endpoints, rewrite, started, type Written } from "./written.ts";
import { assertNoRejects, type XdsCases, type XdsContext } from "./xds_case.ts";

// --- gRPC clients ----------------------------------------------------------------

type GrpcCheck = (context: XdsContext, name: XdsClientName) => Promise<void>;

function grpcPort(rest: Written = {}): readonly Written[] {
  return [{ port: 50051, appProtocol: "grpc", ...rest }];
}

async function routesCalls(
  context: XdsContext,
  name: XdsClientName,
): Promise<void> {
  const [a, b] = context.backends.grpc as [string, string];
  const echo = (...routes: readonly Written[]) => ({
    ...{ name: "echo", ports: grpcPort({ routes }) },
    endpoints: endpoints(a),
  });
  const other = { name: "other", ports: grpcPort(), endpoints: endpoints(b) };
  const to = [{ service: "other", port: 50051 }];
  await using server = await started(
    context,
    other,
    echo({ prefix: "/grpc.health.v1.Health/", to }),
  );
  await using client = await XdsClient.start(context.workspace, {
    ...{ name, port: server.port, service: "echo" },
  });
  await client.untilAnsweredBy(b);
  await rewrite(server, other, echo({ prefix: "/other.Service/", to }));
  await client.untilAnsweredBy(a);
  await rewrite(server, other, echo({ host: "echo", to }));
  await client.untilAnsweredBy(b);
  await rewrite(server, other, echo({ host: "else", headers: { x: "y" }, to }));
  await client.untilAnsweredBy(a);
  await assertNoRejects(server);
  const { failed, errors } = await client.finish();
  assertEquals([failed, errors], [0, []]);
}

async function failsAtOnce(
  context: XdsContext,
  name: XdsClientName,
): Promise<void> {
  const [a] = context.backends.grpc as [string];
  const to = [{ service: "nowhere", port: 80 }];
  await using server = await started(context, {
    ...{ name: "echo", ports: grpcPort({ routes: [{ to }] }) },
    endpoints: endpoints(a),
  });
  await using client = await XdsClient.start(context.workspace, {
    ...{ name, port: server.port, service: "echo" },
  });
  await client.untilFailed();
  const { errors } = await client.finish();
  // UNAVAILABLE, and not the 15 s of a cluster that nobody tells of.
  assertStringIncludes(errors[0] ?? "", "error 14");
  await assertNoRejects(server);
}

async function staysWithOne(
  context: XdsContext,
  name: XdsClientName,
): Promise<void> {
  await using server = await started(context, {
    ...{ name: "echo", ports: grpcPort(), affinity: { clientIP: {} } },
    endpoints: endpoints(...context.backends.grpc),
  });
  await using client = await XdsClient.start(context.workspace, {
    ...{ name, port: server.port, service: "echo" },
  });
  await client.untilAnswered();
  const { calls, failed, errors } = await client.finish();
  assert(calls > 8, `only ${calls} calls`);
  assertEquals([failed, errors], [0, []]);
  assertEquals((await client.answers()).length, 1);
  await assertNoRejects(server);
}

async function takesWeights(
  context: XdsContext,
  name: XdsClientName,
): Promise<void> {
  const [a, b] = context.backends.grpc as [string, string];
  const weighted = (heavy: string, light: string) => ({
    ...{ name: "echo", ports: grpcPort(), policy: { balance: "weighted" } },
    endpoints: [
      { ...endpoints(heavy)[0], weight: 1_000 },
      { ...endpoints(light)[0], weight: 1 },
    ],
  });
  await using server = await started(context, weighted(a, b));
  await using client = await XdsClient.start(context.workspace, {
    ...{ name, port: server.port, service: "echo" },
  });
  await client.untilAnsweredBy(a);
  await rewrite(server, weighted(b, a));
  await client.untilAnsweredBy(b);
  await assertNoRejects(server);
  const { failed, errors } = await client.finish();
  assertEquals([failed, errors], [0, []]);
}

const GRPC_BY_SENTENCE: Readonly<Record<string, GrpcCheck>> = {
  "sends calls where routes lead": routesCalls,
  "fails at once where a route leads nowhere": failsAtOnce,
  "stays with one endpoint of a service with affinity": staysWithOne,
  "gives heavy endpoints more": takesWeights,
};

// --- Envoy -----------------------------------------------------------------------

type EnvoyCheck = (context: XdsContext, isDelta: boolean) => Promise<void>;

async function startEnvoy(
  { workspace }: XdsContext,
  { port }: DiscoveryServer,
  isDelta: boolean,
): Promise<Envoy> {
  const envoy = await Envoy.start(workspace, { port, isDelta });
  await envoy.child.untilReady(`${envoy.adminUrl}/ready`);
  return envoy;
}

async function assertAccepted(
  envoy: Envoy,
  server: DiscoveryServer,
): Promise<void> {
  assertEquals(await envoy.rejected(), 0);
  await assertNoRejects(server);
}

async function routesHttp(
  context: XdsContext,
  isDelta: boolean,
): Promise<void> {
  await using http = HttpBackends.start("a", "b", "c");
  const listen = freePort();
  const service = (name: string, more: Written = {}) => ({
    name,
    ports: [{ port: 80, appProtocol: "http", ...more }],
    endpoints: endpoints(http.address(name)),
  });
  const to = (name: string) => [{ service: name, port: 80 }];
  const routes = [
    { host: "*.web.example", prefix: "/v2", to: to("b") },
    { host: "www.web.example", headers: { "x-canary": "yes" }, to: to("c") },
    { prefix: "/c", to: to("c") },
    { prefix: "/nowhere", to: to("nowhere") },
  ];
  await using server = await started(
    context,
    service("a", { listen, routes }),
    service("b", { listen: freePort() }),
    service("c", { listen: freePort() }),
  );
  await using envoy = await startEnvoy(context, server, isDelta);
  const cases = [
    [{ path: "/" }, "a"],
    [{ path: "/v2" }, "a"],
    [{ path: "/v2", host: "x.web.example" }, "b"],
    [{ path: "/v2/1", host: `www.web.example:${listen}` }, "b"],
    [{ path: "/", host: "www.web.example", header: "x-canary: yes" }, "c"],
    [{ path: "/", host: "www.web.example", header: "x-canary: no" }, "a"],
    [{ path: "/", header: "x-canary: yes" }, "a"],
    [{ path: "/c/1", host: "www.web.example" }, "c"],
    [{ path: "/nowhere" }, "503"],
  ] as const;
  await eventually(
    "Envoy answers",
    async () => await httpGet(listen, { path: "/" }).catch(() => "") === "a",
  );
  for (const [request, expected] of cases) {
    const seen = await httpGet(listen, request);
    assertEquals(seen, expected, JSON.stringify(request));
  }
  assertEquals(
    await http.echoOf(`ws://127.0.0.1:${listen}/`, "hello"),
    "hello",
  );
  await assertAccepted(envoy, server);
}

async function speaksHttp2(
  context: XdsContext,
  isDelta: boolean,
): Promise<void> {
  const [a, b] = context.backends.grpc as [string, string];
  const listen = freePort();
  const service = (appProtocol: string) => ({
    ...{ name: "echo", ports: [{ port: 50051, appProtocol, listen }] },
    endpoints: endpoints(a, b),
  });
  const startClient = () =>
    XdsClient.start(context.workspace, {
      ...{ name: "grpc-go", port: server.port, service: "echo" },
      target: `127.0.0.1:${listen}`,
    });
  // Bytes: all calls of a connection go where the connection goes.
  await using server = await started(context, service("bytes"));
  await using envoy = await startEnvoy(context, server, isDelta);
  {
    await using client = await startClient();
    await client.untilAnswered();
    await client.finish();
    assertEquals((await client.answers()).length, 1);
  }
  await rewrite(server, service("grpc"));
  await eventually(
    "Envoy has routes",
    async () => await envoy.sum("^http\\..*\\.rds\\..*update_success$") > 0,
  );
  await using client = await startClient();
  await client.untilAnsweredBy(a, b);
  await assertAccepted(envoy, server);
}

async function takesEverything(
  context: XdsContext,
  isDelta: boolean,
): Promise<void> {
  const { tcp, udp } = context.backends;
  const ports = new Map<string, number>();
  const service = (
    name: string,
    protocol: "tcp" | "udp",
    more: Written,
  ): Written => {
    ports.set(name, freePort());
    return {
      ...{ name, ...more },
      ports: [{ port: 7, protocol, listen: ports.get(name) }],
      endpoints: endpoints(...protocol === "tcp" ? tcp : udp),
    };
  };
  const sticky = { affinity: { clientIP: { ttl: "1h" } } };
  const balanced = (balance: string) => ({ policy: { balance } });
  const health = { tcp: {}, interval: "1s", timeout: "500ms" };
  await using server = await started(
    context,
    service("sticky", "tcp", sticky),
    service("sticky-udp", "udp", sticky),
    service("least", "tcp", balanced("least-connections")),
    service("random", "tcp", balanced("random")),
    service("weighted", "tcp", balanced("weighted")),
    service("checked", "tcp", { policy: { health, dialTimeout: "300ms" } }),
    service("near", "tcp", { policy: { zoneAware: true } }),
    service("quick", "udp", { policy: { udpIdle: "2s" } }),
  );
  await using envoy = await startEnvoy(context, server, isDelta);
  for (const name of ["least", "random", "weighted", "checked", "near"]) {
    await using caller = Caller.tcp(ports.get(name)!);
    await caller.untilAnsweredBy(...tcp);
  }
  {
    await using caller = Caller.tcp(ports.get("sticky")!);
    await caller.untilAnsweredByOne();
  }
  {
    await using caller = Caller.udp(ports.get("sticky-udp")!);
    await caller.untilAnsweredByOne();
  }
  {
    await using caller = Caller.udp(ports.get("quick")!);
    await caller.untilAnsweredBy(...udp);
  }
  await assertAccepted(envoy, server);
}

async function leavesOutTheIll(
  context: XdsContext,
  isDelta: boolean,
): Promise<void> {
  await using http = HttpBackends.start("a", "b");
  const listen = freePort();
  const health = { http: { path: "/health" }, interval: "1s", timeout: "1s" };
  await using server = await started(context, {
    name: "web",
    ports: [{ port: 80, appProtocol: "http", listen }],
    policy: { health },
    endpoints: endpoints(http.address("a"), http.address("b")),
  });
  const answers = async () => {
    const seen = new Set<string>();
    for (let call = 0; call < 8; call++) {
      seen.add(await httpGet(listen, { path: "/" }).catch(() => "nobody"));
    }
    return [...seen].sort().join(" ");
  };
  await using envoy = await startEnvoy(context, server, isDelta);
  await eventually("both answer", async () => await answers() === "a b");
  http.setHealth("a", false);
  await eventually(
    "the ill one is left out",
    async () => await answers() === "b",
  );
  http.setHealth("a", true);
  await eventually("it is back", async () => await answers() === "a b");
  await assertAccepted(envoy, server);
}

async function movesPlaces(
  context: XdsContext,
  isDelta: boolean,
): Promise<void> {
  const [a, b] = context.backends.tcp as [string, string];
  const [first, second, third] = [freePort(), freePort(), freePort()];
  const service = (name: string, listen: number, address: string) => ({
    ...{ name, ports: [{ port: 7, listen }] },
    endpoints: endpoints(address),
  });
  await using server = await started(
    context,
    service("a", first, a),
    service("b", second, b),
  );
  await using envoy = await startEnvoy(context, server, isDelta);
  await using atFirst = Caller.tcp(first);
  await using atSecond = Caller.tcp(second);
  await using atThird = Caller.tcp(third);
  await atFirst.untilAnsweredBy(a);
  await atSecond.untilAnsweredBy(b);
  await rewrite(server, service("a", third, a), service("b", second, b));
  await atThird.untilAnsweredBy(a);
  await atFirst.untilAnsweredBy("nobody");
  // They change places, and then somebody comes to the place of one that goes.
  await rewrite(server, service("a", second, a), service("b", third, b));
  await atSecond.untilAnsweredBy(a);
  await atThird.untilAnsweredBy(b);
  await rewrite(server, service("b", third, b), service("c", second, b));
  await atSecond.untilAnsweredBy(b);
  await assertAccepted(envoy, server);
}

const ENVOY_BY_SENTENCE: Readonly<Record<string, EnvoyCheck>> = {
  "routes HTTP by host, path and header, and carries WebSockets": routesHttp,
  "speaks HTTP/2 to gRPC endpoints": speaksHttp2,
  "takes everything that a catalog can say of a service": takesEverything,
  "lets services change their places": movesPlaces,
  "leaves out endpoints that its health checks find ill": leavesOutTheIll,
};

/** For our server, which alone knows catalogs like that. */
export const CATALOG_CASES: XdsCases = {
  ...Object.fromEntries(
    XDS_CLIENTS.flatMap((name) =>
      Object.entries(GRPC_BY_SENTENCE).map(([sentence, check]) => [
        `${name} ${sentence}`,
        (context: XdsContext) => check(context, name),
      ])
    ),
  ),
  ...Object.fromEntries(
    [false, true].flatMap((isDelta) =>
      Object.entries(ENVOY_BY_SENTENCE).map(([sentence, check]) => [
        `Envoy over ${isDelta ? "Delta" : "SotW"} ${sentence}`,
        (context: XdsContext) => check(context, isDelta),
      ])
    ),
  ),
};
