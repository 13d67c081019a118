/**
 * Envoy, over SotW and over Delta.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import type {
  DiscoveredService,
  DiscoveryServer,
} from "../../peers/discovery_server.ts";
import { Envoy } from "../../peers/envoy.ts";
import { freePort } from "../../peers/ports.ts";
import { eventually } from "../kube_case.ts";
import { sleep } from "../proxy_case.ts";
import { Caller } from "./callers.ts";
import {
  assertNoRejects,
  startDiscovery,
  type XdsCases,
  type XdsContext,
} from "./xds_case.ts";

/** Longer than Envoy waits before it tries the server again at first. */
const ABSENCE_MS = 2_000;

/** A service for TCP and one for UDP. */
class Pair {
  readonly tcpPort: number = freePort();
  readonly udpPort: number = freePort();

  services(
    tcp: readonly string[],
    udp: readonly string[],
  ): readonly DiscoveredService[] {
    return [
      { name: "echo", listen: this.tcpPort, endpoints: tcp },
      {
        name: "echo-udp",
        protocol: "udp",
        listen: this.udpPort,
        endpoints: udp,
      },
    ];
  }
}

/** Neither side has seen a reject. */
async function assertAccepted(
  envoy: Envoy,
  server: DiscoveryServer,
): Promise<void> {
  assertEquals(await envoy.rejected(), 0);
  await assertNoRejects(server);
}

async function follows(context: XdsContext, isDelta: boolean): Promise<void> {
  const { workspace, backends: { tcp, udp } } = context;
  const pair = new Pair();
  await using server = await startDiscovery(
    context,
    pair.services(tcp.slice(0, 2), udp.slice(0, 2)),
  );
  const { port } = server;
  await using envoy = await Envoy.start(workspace, { port, isDelta });
  await envoy.child.untilReady(`${envoy.adminUrl}/ready`);
  await using tcpCaller = Caller.tcp(pair.tcpPort);
  await using udpCaller = Caller.udp(pair.udpPort);
  await tcpCaller.untilAnsweredBy(...tcp.slice(0, 2));
  await udpCaller.untilAnsweredBy(...udp.slice(0, 2));
  await server.rewrite(pair.services(tcp.slice(1), udp.slice(1)));
  await tcpCaller.untilAnsweredBy(...tcp.slice(1));
  await udpCaller.untilAnsweredBy(...udp.slice(1));
  // A service that comes, and goes.
  const third = { name: "third", listen: freePort(), endpoints: [tcp[0]!] };
  const pairs = pair.services(tcp.slice(1), udp.slice(1));
  await server.rewrite([...pairs, third]);
  {
    await using caller = Caller.tcp(third.listen);
    await caller.untilAnsweredBy(tcp[0]!);
  }
  await server.rewrite(pairs);
  await eventually(
    "nobody serves the third",
    async () => (await envoy.endpoints()).size === 2,
  );
  tcpCaller.assertAllWell();
  udpCaller.assertAllWell();
  await assertAccepted(envoy, server);
}

async function survives(context: XdsContext, isDelta: boolean): Promise<void> {
  const { workspace, backends: { tcp, udp } } = context;
  const pair = new Pair();
  await using server = await startDiscovery(
    context,
    pair.services(tcp.slice(0, 2), udp.slice(0, 2)),
  );
  const { port } = server;
  await using envoy = await Envoy.start(workspace, { port, isDelta });
  await envoy.child.untilReady(`${envoy.adminUrl}/ready`);
  await using tcpCaller = Caller.tcp(pair.tcpPort);
  await using udpCaller = Caller.udp(pair.udpPort);
  await tcpCaller.untilAnsweredBy(...tcp.slice(0, 2));
  await udpCaller.untilAnsweredBy(...udp.slice(0, 2));
  await server.stop("SIGKILL");
  await sleep(ABSENCE_MS);
  await server.begin();
  await server.rewrite(pair.services(tcp.slice(1), udp.slice(1)));
  await tcpCaller.untilAnsweredBy(...tcp.slice(1));
  await udpCaller.untilAnsweredBy(...udp.slice(1));
  // Again, politely, and with another catalog in the meantime.
  await server.stop("SIGTERM");
  await server.rewrite(pair.services([tcp[0]!], [udp[0]!]));
  await server.begin();
  await tcpCaller.untilAnsweredBy(tcp[0]!);
  await udpCaller.untilAnsweredBy(udp[0]!);
  tcpCaller.assertAllWell();
  udpCaller.assertAllWell();
  await assertAccepted(envoy, server);
}

/** Only the kernel can tell Envoy that a port is taken. */
async function rejects(context: XdsContext, isDelta: boolean): Promise<void> {
  const { workspace, backends: { tcp, udp } } = context;
  const pair = new Pair();
  const services = pair.services([tcp[0]!], [udp[0]!]);
  await using server = await startDiscovery(context, services);
  const { port } = server;
  await using envoy = await Envoy.start(workspace, { port, isDelta });
  await envoy.child.untilReady(`${envoy.adminUrl}/ready`);
  await using caller = Caller.tcp(pair.tcpPort);
  await caller.untilAnsweredBy(tcp[0]!);
  using squatter = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const taken = {
    name: "taken",
    listen: squatter.addr.port,
    endpoints: [tcp[1]!],
  };
  await server.rewrite([...services, taken]);
  await eventually(
    "the server hears of it",
    async () => (await server.rejects()).length > 0,
  );
  const [reject] = await server.rejects();
  assertEquals(reject!.type, "Listener");
  assert(/Address already in use/.test(reject!.message), reject!.message);
  assert(await envoy.rejected() > 0);
  // What is good goes on and still follows.
  await server.rewrite(pair.services([tcp[2]!], [udp[0]!]));
  await caller.untilAnsweredBy(tcp[2]!);
  caller.assertAllWell();
}

const BY_SENTENCE = {
  "balances TCP and UDP, follows endpoints, a new service and its removal":
    follows,
  "loses nobody while the server is killed, restarted, and moved on": survives,
  "tells of a port that is taken, and goes on": rejects,
};

/** For any server. */
export const ENVOY_CASES: XdsCases = Object.fromEntries(
  [false, true].flatMap((isDelta) =>
    Object.entries(BY_SENTENCE).map(([sentence, check]) => [
      `Envoy over ${isDelta ? "Delta" : "SotW"} ${sentence}`,
      (context: XdsContext) => check(context, isDelta),
    ])
  ),
);
