/**
 * What a catalog can say of a service besides where it is, and what clients make
 * of it: routes, affinity, weights, other protocols, health.
 *
 * @module
 */

import { assertEquals, assertStringIncludes } from "@std/assert";
import type { DiscoveredService } from "../../../tests/support/peers/discovery_server.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import { eventually } from "../kube_case.ts";
import { Caller } from "./callers.ts";
import { HttpBackends, httpGet } from "./http_backends.ts";
import {
  overEnvoy,
  withClients,
  type XdsCases,
  type XdsScene,
} from "./xds_case.ts";

/** Where a route leads. */
function to(service: string): readonly unknown[] {
  return [{ service, port: 80 }];
}

// --- gRPC clients ----------------------------------------------------------------

async function routesCalls(scene: XdsScene): Promise<void> {
  const [a, b] = scene.backends.grpc;
  const services = (
    route: Readonly<Record<string, unknown>>,
  ): readonly DiscoveredService[] => [
    {
      ...{ name: "echo", appProtocol: "grpc", endpoints: [a] },
      routes: [{ ...route, to: to("other") }],
    },
    { name: "other", appProtocol: "grpc", endpoints: [b] },
  ];
  const routes = [
    [{ prefix: "/grpc.health.v1.Health/" }, b],
    [{ prefix: "/other.Service/" }, a],
    [{ host: "echo" }, b],
    [{ host: "else", headers: { x: "y" } }, a],
  ] as const;
  const server = await scene.server(services(routes[0][0]));
  const client = await scene.client(server.port);
  for (const [route, answering] of routes) {
    await server.rewrite(services(route));
    await client.untilAnsweredBy(answering);
  }
}

async function failsAtOnce(scene: XdsScene): Promise<void> {
  const [a] = scene.backends.grpc;
  const server = await scene.server([{
    ...{ name: "echo", appProtocol: "grpc", endpoints: [a] },
    routes: [{ to: to("nowhere") }],
  }]);
  // UNAVAILABLE, and not the 15 s of a cluster that nobody tells of.
  const failure = await scene.failureOf(await scene.client(server.port));
  assertStringIncludes(failure, "error 14");
}

async function staysWithOne(scene: XdsScene): Promise<void> {
  const server = await scene.server([{
    ...{ name: "echo", appProtocol: "grpc", affinity: { clientIP: {} } },
    endpoints: scene.backends.grpc,
  }]);
  const client = await scene.client(server.port);
  await client.untilAnswered();
  await client.finish();
  assertEquals((await client.answers()).length, 1);
}

async function takesWeights(scene: XdsScene): Promise<void> {
  const [a, b] = scene.backends.grpc;
  const weighted = (heavy: string, light: string): DiscoveredService => ({
    ...{ name: "echo", appProtocol: "grpc", policy: { balance: "weighted" } },
    ...{ endpoints: [heavy, light], each: [{ weight: 1_000 }, { weight: 1 }] },
  });
  const server = await scene.server([weighted(a, b)]);
  const client = await scene.client(server.port);
  await client.untilAnsweredBy(a);
  await server.rewrite([weighted(b, a)]);
  await client.untilAnsweredBy(b);
}

// --- Envoy -----------------------------------------------------------------------

async function routesHttp(scene: XdsScene): Promise<void> {
  const http = scene.use(HttpBackends.start("a", "b", "c"));
  const listen = freePort();
  const service = (name: string, listen: number): DiscoveredService => ({
    ...{ name, appProtocol: "http", listen, endpoints: [http.address(name)] },
  });
  const routes = [
    { host: "*.web.example", prefix: "/v2", to: to("b") },
    { host: "www.web.example", headers: { "x-canary": "yes" }, to: to("c") },
    { prefix: "/c", to: to("c") },
    { prefix: "/nowhere", to: to("nowhere") },
  ];
  const server = await scene.server([
    { ...service("a", listen), routes },
    service("b", freePort()),
    service("c", freePort()),
  ]);
  await scene.envoy(server.port);
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
}

async function speaksHttp2(scene: XdsScene): Promise<void> {
  const [a, b] = scene.backends.grpc;
  const listen = freePort();
  const service = (appProtocol: "bytes" | "grpc"): DiscoveredService => ({
    ...{ name: "echo", appProtocol, listen, endpoints: [a, b] },
  });
  const throughEnvoy = { target: `127.0.0.1:${listen}` };
  // Bytes: all calls of a connection go where the connection goes.
  const server = await scene.server([service("bytes")]);
  const envoy = await scene.envoy(server.port);
  const first = await scene.client(server.port, throughEnvoy);
  await first.untilAnswered();
  await first.finish();
  assertEquals((await first.answers()).length, 1);
  await server.rewrite([service("grpc")]);
  await eventually(
    "Envoy has routes",
    async () => await envoy.sum("^http\\..*\\.rds\\..*update_success$") > 0,
  );
  const second = await scene.client(server.port, throughEnvoy);
  await second.untilAnsweredBy(a, b);
}

async function takesEverything(scene: XdsScene): Promise<void> {
  const { backends } = scene;
  const service = (
    name: string,
    protocol: "tcp" | "udp",
    more: Pick<DiscoveredService, "affinity" | "policy">,
  ) => ({
    ...{ name, protocol, listen: freePort(), ...more },
    endpoints: backends[protocol],
  });
  const sticky = { affinity: { clientIP: { ttl: "1h" } } };
  const balanced = (balance: string) => ({ policy: { balance } });
  const health = { tcp: {}, interval: "1s", timeout: "500ms" };
  const services = [
    service("sticky", "tcp", sticky),
    service("sticky-udp", "udp", sticky),
    service("least", "tcp", balanced("least-connections")),
    service("random", "tcp", balanced("random")),
    service("weighted", "tcp", balanced("weighted")),
    service("checked", "tcp", { policy: { health, dialTimeout: "300ms" } }),
    service("near", "tcp", { policy: { zoneAware: true } }),
    service("quick", "udp", { policy: { udpIdle: "2s" } }),
  ];
  const server = await scene.server(services);
  await scene.envoy(server.port);
  for (const { protocol, listen, affinity } of services) {
    await using caller = new Caller(protocol, listen);
    await (affinity === undefined
      ? caller.untilAnsweredBy(...backends[protocol])
      : caller.untilAnsweredByOne());
  }
}

async function leavesOutTheIll(scene: XdsScene): Promise<void> {
  const http = scene.use(HttpBackends.start("a", "b"));
  const listen = freePort();
  const health = { http: { path: "/health" }, interval: "1s", timeout: "1s" };
  const server = await scene.server([{
    ...{ name: "web", appProtocol: "http", listen, policy: { health } },
    endpoints: [http.address("a"), http.address("b")],
  }]);
  const answers = async () => {
    const seen = new Set<string>();
    for (let call = 0; call < 8; call++) {
      seen.add(await httpGet(listen, { path: "/" }).catch(() => "nobody"));
    }
    return [...seen].sort().join(" ");
  };
  await scene.envoy(server.port);
  await eventually("both answer", async () => await answers() === "a b");
  http.setHealth("a", false);
  await eventually(
    "the ill one is left out",
    async () => await answers() === "b",
  );
  http.setHealth("a", true);
  await eventually("it is back", async () => await answers() === "a b");
}

async function movesPlaces(scene: XdsScene): Promise<void> {
  const [a, b] = scene.backends.tcp;
  const ports = [freePort(), freePort(), freePort()] as const;
  const service = (name: string, place: number, address: string) => ({
    ...{ name, listen: ports[place]!, endpoints: [address] },
  });
  const server = await scene.server([service("a", 0, a), service("b", 1, b)]);
  await scene.envoy(server.port);
  // Nobody is at some places for a while.
  const [first, second, third] = ports.map((port) =>
    scene.use(new Caller("tcp", port))
  ) as [Caller, Caller, Caller];
  await first.untilAnsweredBy(a);
  await second.untilAnsweredBy(b);
  await server.rewrite([service("a", 2, a), service("b", 1, b)]);
  await third.untilAnsweredBy(a);
  await first.untilAnsweredBy("nobody");
  // They change places, and then somebody comes to the place of one that goes.
  await server.rewrite([service("a", 1, a), service("b", 2, b)]);
  await second.untilAnsweredBy(a);
  await third.untilAnsweredBy(b);
  await server.rewrite([service("b", 2, b), service("c", 1, b)]);
  await second.untilAnsweredBy(b);
}

/** For our server, which alone knows catalogs like that. */
export const CATALOG_CASES: XdsCases = {
  ...withClients({
    "sends calls where routes lead": routesCalls,
    "fails at once where a route leads nowhere": failsAtOnce,
    "stays with one endpoint of a service with affinity": staysWithOne,
    "gives heavy endpoints more": takesWeights,
  }),
  ...overEnvoy({
    "routes HTTP by host, path and header, and carries WebSockets": routesHttp,
    "speaks HTTP/2 to gRPC endpoints": speaksHttp2,
    "takes everything that a catalog can say of a service": takesEverything,
    "lets services change their places": movesPlaces,
    "leaves out endpoints that its health checks find ill": leavesOutTheIll,
  }),
};
