/**
 * Envoy, over SotW and over Delta.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import type {
  DiscoveredService,
  DiscoveryServer,
} from "../../../tests/support/peers/discovery_server.ts";
import { Envoy } from "../../peers/envoy.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import { eventually } from "../kube_case.ts";
import { Caller } from "./callers.ts";
import {
  assertNoRejects,
  startDiscovery,
  type XdsCases,
  type XdsContext,
} from "./xds_case.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";

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

/** An Envoy that balances both over the first two of their backends. */
interface Site {
  readonly server: DiscoveryServer;
  readonly envoy: Envoy;
  readonly pair: Pair;
  readonly tcp: readonly string[];
  readonly udp: readonly string[];
  untilAnsweredBy(
    tcp: readonly string[],
    udp: readonly string[],
  ): Promise<void>;
}

type Check = (context: XdsContext, isDelta: boolean) => Promise<void>;

/** Nobody may lose anything, and neither side may see a reject, while it checks. */
function onSite(check: (site: Site) => Promise<void>): Check {
  return async (context, isDelta) => {
    const { workspace, backends: { tcp, udp } } = context;
    const pair = new Pair();
    const first = [tcp.slice(0, 2), udp.slice(0, 2)] as const;
    await using server = await startDiscovery(context, pair.services(...first));
    const { port } = server;
    await using envoy = await Envoy.start(workspace, { port, isDelta });
    await envoy.child.untilReady(`${envoy.adminUrl}/ready`);
    await using tcpCaller = Caller.tcp(pair.tcpPort);
    await using udpCaller = Caller.udp(pair.udpPort);
    const untilAnsweredBy: Site["untilAnsweredBy"] = async (tcp, udp) => {
      await tcpCaller.untilAnsweredBy(...tcp);
      await udpCaller.untilAnsweredBy(...udp);
    };
    await untilAnsweredBy(...first);
    await check({ server, envoy, pair, tcp, udp, untilAnsweredBy });
    tcpCaller.assertAllWell();
    udpCaller.assertAllWell();
    assertEquals(await envoy.rejected(), 0);
    await assertNoRejects(server);
  };
}

async function follows(site: Site): Promise<void> {
  const { server, envoy, pair, tcp, udp } = site;
  await server.rewrite(pair.services(tcp.slice(1), udp.slice(1)));
  await site.untilAnsweredBy(tcp.slice(1), udp.slice(1));
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
}

async function survives(site: Site): Promise<void> {
  const { server, pair, tcp, udp } = site;
  await server.stop("SIGKILL");
  await sleep(ABSENCE_MS);
  await server.begin();
  await server.rewrite(pair.services(tcp.slice(1), udp.slice(1)));
  await site.untilAnsweredBy(tcp.slice(1), udp.slice(1));
  // Again, politely, and with another catalog in the meantime.
  await server.stop("SIGTERM");
  await server.rewrite(pair.services([tcp[0]!], [udp[0]!]));
  await server.begin();
  await site.untilAnsweredBy([tcp[0]!], [udp[0]!]);
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
    "the server learns of it",
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

const BY_SENTENCE: Readonly<Record<string, Check>> = {
  "balances TCP and UDP, follows endpoints, a new service and its removal":
    onSite(follows),
  "loses nobody while the server is killed, restarted, and moved on": onSite(
    survives,
  ),
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
