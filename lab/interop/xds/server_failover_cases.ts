/**
 * Two servers of one catalog behind one address, one of which is killed: clients go
 * to the other, no call fails, nothing is rejected, and what changes is followed.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { Envoy } from "../../peers/envoy.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import { XdsClient } from "../../peers/xds_client.ts";
import { Balancer } from "../../../tests/support/rigs/balancer.ts";
import { eventually } from "../kube_case.ts";
import { Caller } from "./callers.ts";
import { endpoints, rewrite, started, type Written } from "./written.ts";
import {
  assertNoRejects,
  startDiscovery,
  type XdsCases,
  type XdsContext,
} from "./xds_case.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";

/** Clients wait a second or two before they come again. */
const AWAY_MS = 5_000;

async function losesItsServer(
  context: XdsContext,
  isDelta: boolean,
): Promise<void> {
  const { workspace, backends: { tcp, grpc } } = context;
  const listen = freePort();
  const services = (each: number): readonly Written[] => [
    {
      ...{ name: "tcp", ports: [{ port: 80, appProtocol: "bytes", listen }] },
      endpoints: endpoints(tcp[each]!),
    },
    {
      ...{ name: "echo", ports: [{ port: 80, appProtocol: "grpc" }] },
      endpoints: endpoints(grpc[each]!),
    },
  ];
  await using one = await started(context, ...services(0));
  await using two = await startDiscovery(context, [], { file: one.file });
  const balancer = new Balancer();
  balancer.add(one.port);
  try {
    const { port } = balancer;
    await using envoy = await Envoy.start(workspace, { port, isDelta });
    await using client = await XdsClient.start(workspace, {
      ...{ name: "grpc-go", port, service: "echo" },
    });
    await client.untilAnsweredBy(grpc[0]!);
    await eventually("Envoy listens", async () => {
      const hostname = "127.0.0.1";
      const conn = await Deno.connect({ hostname, port: listen })
        .catch(() => undefined);
      conn?.close();
      return conn !== undefined;
    });
    await using caller = Caller.tcp(listen);
    await eventually("calls", () => caller.calls > 10);
    balancer.remove(one.port);
    balancer.add(two.port);
    await one.stop("SIGKILL");
    await sleep(AWAY_MS);
    await eventually(
      "both are at the other server",
      async () => (await two.clients()).length === 2,
    );
    caller.assertAllWell();
    await rewrite(two, ...services(1));
    await client.untilAnsweredBy(grpc[1]!);
    const { failed, errors, calls } = await client.finish();
    assertEquals([failed, errors], [0, []], `of ${calls}`);
    assert(calls > 10);
    caller.assertAllWell();
    assertEquals(await envoy.rejected(), 0);
    await assertNoRejects(two);
  } finally {
    balancer.close();
  }
}

export const SERVER_FAILOVER_CASES: XdsCases = {
  "Envoy over SotW and grpc-go lose nothing when their server is killed": (
    context,
  ) => losesItsServer(context, false),
  "Envoy over Delta and grpc-go lose nothing when their server is killed": (
    context,
  ) => losesItsServer(context, true),
};
