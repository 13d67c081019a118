/**
 * A service and the route to it come in one change, and the service before it
 * goes: no request may find a route to nowhere.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import type { DiscoveryServer } from "../../../tests/support/peers/discovery_server.ts";
import { Envoy } from "../../peers/envoy.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import {
  XDS_CLIENTS,
  XdsClient,
  type XdsClientName,
} from "../../peers/xds_client.ts";
import { Caller } from "./callers.ts";
import { HttpBackends } from "./http_backends.ts";
import { endpoints, rewrite, started, type Written } from "./written.ts";
import { assertNoRejects, type XdsCases, type XdsContext } from "./xds_case.ts";

const CHANGES = 40;

const CALLERS = 8;

/** What programs ask for, with all requests sent elsewhere. */
type Front = (to: string) => Written;

/** A front, and the service that its requests go to. */
function pair(
  front: Front,
  number: number,
  addresses: readonly string[],
  port: Written,
): readonly Written[] {
  const name = `n${number}`;
  const address = addresses[number % addresses.length]!;
  return [
    front(name),
    { name, ports: [port], endpoints: endpoints(address) },
  ];
}

async function change(
  server: DiscoveryServer,
  servicesOf: (number: number) => readonly Written[],
  untilMoved: (number: number) => Promise<void>,
): Promise<void> {
  for (let number = 1; number <= CHANGES; number++) {
    await rewrite(server, ...servicesOf(number));
    await untilMoved(number);
  }
}

async function envoyNeverLost(
  context: XdsContext,
  isDelta: boolean,
): Promise<void> {
  await using http = HttpBackends.start("a", "b");
  const addresses = [http.address("a"), http.address("b")];
  const listen = freePort();
  const front: Front = (to) => ({
    name: "front",
    ports: [{
      ...{ port: 80, appProtocol: "http", listen },
      routes: [{ to: [{ service: to, port: 80 }] }],
    }],
    endpoints: [],
  });
  const servicesOf = (number: number) =>
    pair(front, number, addresses, {
      // Elsewhere each time: nobody waits for a place to be free again.
      ...{ port: 80, appProtocol: "http", listen: freePort() },
    });
  await using server = await started(context, ...servicesOf(0));
  await using envoy = await Envoy.start(context.workspace, {
    ...{ port: server.port, isDelta },
  });
  await using callers = new AsyncDisposableStack();
  const all = Array.from(
    { length: CALLERS },
    () => callers.use(Caller.http(listen)),
  );
  for (const caller of all) await caller.untilAnsweredBy("a");
  for (const caller of all) caller.forgetFailures();
  await change(server, servicesOf, async (number) => {
    for (const caller of all) {
      await caller.untilAnsweredBy(number % 2 === 0 ? "a" : "b");
    }
  });
  const failures = all.flatMap(({ failures }) => failures).slice(0, 5);
  const failed = all.reduce((sum, { failed }) => sum + failed, 0);
  const calls = all.reduce((sum, { calls }) => sum + calls, 0);
  assertEquals([failed, failures], [0, []], `of ${calls}`);
  assert(calls > CHANGES * CALLERS, `only ${calls} calls`);
  assertEquals(await envoy.rejected(), 0);
  await assertNoRejects(server);
}

async function clientNeverLost(
  context: XdsContext,
  name: XdsClientName,
): Promise<void> {
  const { workspace, backends: { grpc } } = context;
  const front: Front = (to) => ({
    name: "echo",
    ports: [{
      ...{ port: 50051, appProtocol: "grpc" },
      routes: [{ to: [{ service: to, port: 50051 }] }],
    }],
    endpoints: [],
  });
  const servicesOf = (number: number) =>
    pair(front, number, grpc.slice(0, 2), { port: 50051, appProtocol: "grpc" });
  await using server = await started(context, ...servicesOf(0));
  await using client = await XdsClient.start(workspace, {
    ...{ name, port: server.port, service: "echo" },
  });
  await client.untilAnsweredBy(grpc[0]!);
  await change(
    server,
    servicesOf,
    (number) => client.untilAnsweredBy(grpc[number % 2]!),
  );
  const { calls, failed, errors } = await client.finish();
  assertEquals([failed, errors], [0, []], `of ${calls}`);
  assert(calls > CHANGES * 8, `only ${calls} calls`);
  await assertNoRejects(server);
}

export const ORDER_CASES: XdsCases = Object.fromEntries([
  ...[false, true].map((isDelta) =>
    [
      `Envoy over ${isDelta ? "Delta" : "SotW"} loses nothing while routes ` +
      "move to services that are new",
      (context: XdsContext) => envoyNeverLost(context, isDelta),
    ] as const
  ),
  ...XDS_CLIENTS.map((name) =>
    [
      `${name} loses nothing while routes move to services that are new`,
      (context: XdsContext) => clientNeverLost(context, name),
    ] as const
  ),
]);
