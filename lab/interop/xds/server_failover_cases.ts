/**
 * Two servers of one catalog behind one address, one of which is killed: clients go
 * to the other, no call fails, nothing is rejected, and what changes is followed.
 *
 * @module
 */

import type { DiscoveredService } from "../../../tests/support/peers/discovery_server.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import { Balancer } from "../../../tests/support/rigs/balancer.ts";
import { eventually } from "../kube_case.ts";
import { overEnvoy, type XdsCases, type XdsScene } from "./xds_case.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";

/** Clients wait a second or two before they come again. */
const AWAY_MS = 5_000;

async function losesItsServer(scene: XdsScene): Promise<void> {
  const { tcp, grpc } = scene.backends;
  const listen = freePort();
  const services = (each: 0 | 1): readonly DiscoveredService[] => [
    { name: "tcp", listen, endpoints: [tcp[each]] },
    { name: "echo", appProtocol: "grpc", endpoints: [grpc[each]] },
  ];
  const one = await scene.server(services(0));
  const two = await scene.server([], { file: one.file });
  const balancer = scene.use(new Balancer());
  balancer.add(one.port);
  await scene.envoy(balancer.port);
  const client = await scene.client(balancer.port);
  await client.untilAnsweredBy(grpc[0]);
  const caller = scene.caller("tcp", listen);
  await eventually("calls", () => caller.calls > 10);
  balancer.remove(one.port);
  balancer.add(two.port);
  scene.spare(one);
  await one.stop("SIGKILL");
  await sleep(AWAY_MS);
  await eventually(
    "both are at the other server",
    async () => (await two.clients()).length === 2,
  );
  caller.assertAllWell();
  await two.rewrite(services(1));
  await client.untilAnsweredBy(grpc[1]);
}

export const SERVER_FAILOVER_CASES: XdsCases = overEnvoy({
  "and grpc-go lose nothing when their server is killed": losesItsServer,
});
