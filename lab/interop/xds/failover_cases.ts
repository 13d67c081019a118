/**
 * Endpoints that are dead and that the catalog still has: no request may fail
 * while another endpoint lives.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { NACK_RETRY_MS_MIN } from "../../../services/discovery/subscriptions/nacked.ts";
import { Envoy } from "../../peers/envoy.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import { XdsClient } from "../../peers/xds_client.ts";
import { eventually } from "../kube_case.ts";
import { Caller } from "./callers.ts";
import { HttpBackends, httpGet } from "./http_backends.ts";
import { endpoints, started, type Written } from "./written.ts";
import { assertNoRejects, type XdsCases, type XdsContext } from "./xds_case.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";

/** At once, of each protocol. */
const CALLERS = 32;

/** Until those that were left out have come back, and have gone again. */
const WATCH_MS = 17_000;

const CALLS_IN_ZONE = 100;

type EnvoyCheck = (context: XdsContext, isDelta: boolean) => Promise<void>;

/** Nobody listens there. */
function deadEndpoint(): string {
  return `127.0.0.1:${freePort()}`;
}

async function losesNothing(
  context: XdsContext,
  isDelta: boolean,
): Promise<void> {
  const { workspace, backends: { tcp, grpc } } = context;
  await using http = HttpBackends.start("a");
  const ports = { tcp: freePort(), http: freePort(), grpc: freePort() };
  const service = (
    name: keyof typeof ports,
    appProtocol: string,
    endpoint: string,
  ): Written => ({
    ...{ name, ports: [{ port: 80, appProtocol, listen: ports[name] }] },
    endpoints: endpoints(endpoint, deadEndpoint()),
  });
  await using server = await started(
    context,
    service("tcp", "bytes", tcp[0]!),
    service("http", "http", http.address("a")),
    service("grpc", "grpc", grpc[0]!),
  );
  const { port } = server;
  await using envoy = await Envoy.start(workspace, { port, isDelta });
  for (const port of Object.values(ports)) {
    await envoy.child.untilListening(port);
  }
  await using client = await XdsClient.start(workspace, {
    ...{ name: "grpc-go", port, service: "grpc" },
    target: `127.0.0.1:${ports.grpc}`,
  });
  await using callers = new AsyncDisposableStack();
  const all = Array.from({ length: CALLERS }, () => [
    callers.use(Caller.tcp(ports.tcp)),
    callers.use(Caller.http(ports.http)),
  ]).flat();
  await sleep(WATCH_MS);
  const failures = all.flatMap(({ failures }) => failures).slice(0, 5);
  const failed = all.reduce((sum, { failed }) => sum + failed, 0);
  const calls = all.reduce((sum, { calls }) => sum + calls, 0);
  assertEquals([failed, failures], [0, []], `of ${calls}`);
  assert(calls > CALLERS * 20, `only ${calls} calls`);
  assert(await envoy.sum("outlier_detection.ejections_enforced_total$") > 0);
  const { failed: lost, errors } = await client.finish();
  assertEquals([lost, errors], [0, []]);
  assertEquals(await envoy.rejected(), 0);
  await assertNoRejects(server);
}

async function leavesItsZone(
  context: XdsContext,
  isDelta: boolean,
): Promise<void> {
  const { workspace, backends: { tcp } } = context;
  await using http = HttpBackends.start("b");
  const [tcpPort, httpPort] = [freePort(), freePort()];
  const service = (
    name: string,
    appProtocol: string,
    listen: number,
    endpoint: string,
  ): Written => ({
    ...{ name, ports: [{ port: 80, appProtocol, listen }] },
    policy: { zoneAware: true },
    endpoints: [
      { ...endpoints(deadEndpoint())[0], zone: "a" },
      { ...endpoints(endpoint)[0], zone: "b" },
    ],
  });
  await using server = await started(
    context,
    service("tcp", "bytes", tcpPort, tcp[0]!),
    service("http", "http", httpPort, http.address("b")),
  );
  await using envoy = await Envoy.start(workspace, {
    ...{ port: server.port, isDelta, zone: "a" },
  });
  for (const port of [tcpPort, httpPort]) {
    await envoy.child.untilListening(port);
  }
  await using caller = Caller.tcp(tcpPort);
  let answered = 0;
  for (let call = 0; call < CALLS_IN_ZONE; call++) {
    if (await httpGet(httpPort, { path: "/" }) === "b") answered++;
  }
  assertEquals(answered, CALLS_IN_ZONE);
  await eventually("enough calls", () => caller.calls > CALLS_IN_ZONE);
  caller.assertAllWell();
  assertEquals(await envoy.rejected(), 0);
  await assertNoRejects(server);
}

async function listensAfterAll(
  context: XdsContext,
  isDelta: boolean,
): Promise<void> {
  const { workspace, backends: { tcp } } = context;
  const squatter = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const listen = squatter.addr.port;
  const port = { port: 80, appProtocol: "bytes", listen };
  await using server = await started(context, {
    ...{ name: "late", ports: [port], endpoints: endpoints(tcp[0]!) },
  });
  await using envoy = await Envoy.start(workspace, {
    ...{ port: server.port, isDelta },
  });
  await eventually(
    "the server learns of it",
    async () => (await server.rejects()).length > 0,
  );
  squatter.close();
  await sleep(NACK_RETRY_MS_MIN);
  await envoy.child.untilListening(listen);
  await using caller = Caller.tcp(listen);
  await caller.untilAnsweredBy(tcp[0]!);
  const [client] = await server.clients();
  assertEquals(client!.kinds.map(({ state }) => state), [
    ...["synced", "synced", "synced"],
  ]);
}

const BY_SENTENCE: Readonly<Record<string, EnvoyCheck>> = {
  "loses nothing to an endpoint that is dead, of 32 callers": losesNothing,
  "leaves its zone when all endpoints there are dead": leavesItsZone,
  "listens after all when a port is free at last": listensAfterAll,
};

export const FAILOVER_CASES: XdsCases = Object.fromEntries(
  [false, true].flatMap((isDelta) =>
    Object.entries(BY_SENTENCE).map(([sentence, check]) => [
      `Envoy over ${isDelta ? "Delta" : "SotW"} ${sentence}`,
      (context: XdsContext) => check(context, isDelta),
    ])
  ),
);
