/**
 * Endpoints that are dead and that the catalog still has: no request may fail
 * while another endpoint lives.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { NACK_RETRY_MS_MIN } from "../../../services/discovery/subscriptions/nacked.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import { eventually } from "../kube_case.ts";
import { HttpBackends, httpGet } from "./http_backends.ts";
import { overEnvoy, type XdsCases, type XdsScene } from "./xds_case.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";

/** At once, of each protocol. */
const CALLERS = 32;

/** Until those that were left out have come back, and have gone again. */
const WATCH_MS = 17_000;

const CALLS_IN_ZONE = 100;

/** How long a port is free before its listener is sent again. */
const FREE_MS = 10_000;

/** Nobody listens there. */
function deadEndpoint(): string {
  return `127.0.0.1:${freePort()}`;
}

async function losesNothing(scene: XdsScene): Promise<void> {
  const { tcp, grpc } = scene.backends;
  const http = scene.use(HttpBackends.start("a"));
  const ports = { bytes: freePort(), http: freePort(), grpc: freePort() };
  const service = (appProtocol: keyof typeof ports, endpoint: string) => ({
    ...{ name: appProtocol, appProtocol, listen: ports[appProtocol] },
    endpoints: [endpoint, deadEndpoint()],
  });
  const { port } = await scene.server([
    service("bytes", tcp[0]),
    service("http", http.address("a")),
    service("grpc", grpc[0]),
  ]);
  const envoy = await scene.envoy(port);
  await scene.client(port, { target: `127.0.0.1:${ports.grpc}` });
  const callers = Array.from({ length: CALLERS }, () => [
    scene.caller("tcp", ports.bytes),
    scene.caller("http", ports.http),
  ]).flat();
  await sleep(WATCH_MS);
  const calls = callers.reduce((sum, { calls }) => sum + calls, 0);
  assert(calls > CALLERS * 20, `only ${calls} calls`);
  assert(await envoy.sum("outlier_detection.ejections_enforced_total$") > 0);
}

async function leavesItsZone(scene: XdsScene): Promise<void> {
  const http = scene.use(HttpBackends.start("b"));
  const ports = { bytes: freePort(), http: freePort() };
  const service = (appProtocol: keyof typeof ports, endpoint: string) => ({
    ...{ name: appProtocol, appProtocol, listen: ports[appProtocol] },
    policy: { zoneAware: true },
    endpoints: [deadEndpoint(), endpoint],
    each: [{ zone: "a" }, { zone: "b" }],
  });
  const { port } = await scene.server([
    service("bytes", scene.backends.tcp[0]),
    service("http", http.address("b")),
  ]);
  await scene.envoy(port, { zone: "a" });
  const caller = scene.caller("tcp", ports.bytes);
  let answered = 0;
  for (let call = 0; call < CALLS_IN_ZONE; call++) {
    if (await httpGet(ports.http, { path: "/" }) === "b") answered++;
  }
  assertEquals(answered, CALLS_IN_ZONE);
  await eventually("enough calls", () => caller.calls > CALLS_IN_ZONE);
}

async function listensAfterAll(scene: XdsScene): Promise<void> {
  const [a] = scene.backends.tcp;
  const squatter = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const listen = squatter.addr.port;
  const server = await scene.server([{ name: "late", listen, endpoints: [a] }]);
  const envoy = await scene.envoy(server.port);
  await scene.rejectAt(server);
  // Until shortly before it is tried again: others are given free ports, too.
  await sleep(NACK_RETRY_MS_MIN - FREE_MS);
  squatter.close();
  await eventually(
    "Envoy listens",
    async () => await envoy.sum("listener_create_success$") > 0,
  );
  await scene.caller("tcp", listen).untilAnsweredBy(a);
  const [client] = await server.clients();
  assertEquals(client!.kinds.map(({ state }) => state), [
    ...["synced", "synced", "synced"],
  ]);
}

export const FAILOVER_CASES: XdsCases = overEnvoy({
  "loses nothing to an endpoint that is dead, of 32 callers": losesNothing,
  "leaves its zone when all endpoints there are dead": leavesItsZone,
  "listens after all when a port is free at last": listensAfterAll,
});
