/**
 * A service and the route to it come in one change, and the service before it
 * goes: no request may find a route to nowhere.
 *
 * @module
 */

import { assert } from "@std/assert";
import type { DiscoveredService } from "../../../tests/support/peers/discovery_server.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import { HttpBackends } from "./http_backends.ts";
import {
  overEnvoy,
  withClients,
  type XdsCases,
  type XdsScene,
} from "./xds_case.ts";

const CHANGES = 40;

const CALLERS = 8;

/** What programs ask for, and the service that their requests are sent to. */
function pair(
  front: Omit<DiscoveredService, "endpoints">,
  number: number,
  addresses: readonly string[],
): readonly DiscoveredService[] {
  const name = `n${number}`;
  const routes = [{ to: [{ service: name, port: 80 }] }];
  const endpoints = [addresses[number % 2]!];
  // Elsewhere each time: nobody waits for a place to be free again.
  const listen = freePort();
  return [
    { ...front, routes, endpoints: [] },
    { ...front, name, listen, endpoints },
  ];
}

async function envoyNeverLost(scene: XdsScene): Promise<void> {
  const http = scene.use(HttpBackends.start("a", "b"));
  const addresses = [http.address("a"), http.address("b")];
  const listen = freePort();
  const front = { name: "front", appProtocol: "http", listen } as const;
  const server = await scene.server(pair(front, 0, addresses));
  await scene.envoy(server.port);
  const callers = Array.from(
    { length: CALLERS },
    () => scene.caller("http", listen),
  );
  for (const caller of callers) await caller.untilAnsweredBy("a");
  for (const caller of callers) caller.forgetFailures();
  for (let number = 1; number <= CHANGES; number++) {
    await server.rewrite(pair(front, number, addresses));
    for (const caller of callers) {
      await caller.untilAnsweredBy(number % 2 === 0 ? "a" : "b");
    }
  }
  const calls = callers.reduce((sum, { calls }) => sum + calls, 0);
  assert(calls > CHANGES * CALLERS, `only ${calls} calls`);
}

async function clientNeverLost(scene: XdsScene): Promise<void> {
  const { grpc } = scene.backends;
  const front = { name: "echo", appProtocol: "grpc" } as const;
  const server = await scene.server(pair(front, 0, grpc));
  const client = await scene.client(server.port);
  await client.untilAnsweredBy(grpc[0]);
  for (let number = 1; number <= CHANGES; number++) {
    await server.rewrite(pair(front, number, grpc));
    await client.untilAnsweredBy(grpc[number % 2]!);
  }
  const { calls } = await client.finish();
  assert(calls > CHANGES * 8, `only ${calls} calls`);
}

const SENTENCE = "loses nothing while routes move to services that are new";

export const ORDER_CASES: XdsCases = {
  ...overEnvoy({ [SENTENCE]: envoyNeverLost }),
  ...withClients({ [SENTENCE]: clientNeverLost }),
};
