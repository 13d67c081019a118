/**
 * Envoy, with a service for TCP and one for UDP.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import type {
  DiscoveredService,
  DiscoveryServer,
} from "../../../tests/support/peers/discovery_server.ts";
import type { Envoy } from "../../peers/envoy.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import { eventually } from "../kube_case.ts";
import { overEnvoy, type XdsCases, type XdsScene } from "./xds_case.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";

/** Longer than Envoy waits before it tries the server again at first. */
const ABSENCE_MS = 2_000;

/** An Envoy that balances both over the first two of their backends. */
interface Site {
  readonly server: DiscoveryServer;
  readonly envoy: Envoy;
  /** At these backends of either kind. */
  services(...at: readonly number[]): readonly DiscoveredService[];
  untilAnsweredBy(...at: readonly number[]): Promise<void>;
}

async function startSite(scene: XdsScene): Promise<Site> {
  const kinds = (["tcp", "udp"] as const).map((protocol) => {
    const [name, listen] = [`echo-${protocol}`, freePort()];
    const endpoints = (at: readonly number[]) =>
      at.map((each) => scene.backends[protocol][each]!);
    return { name, protocol, listen, endpoints };
  });
  const services: Site["services"] = (...at) =>
    kinds.map((kind) => ({ ...kind, endpoints: kind.endpoints(at) }));
  const server = await scene.server(services(0, 1));
  const envoy = await scene.envoy(server.port);
  const callers = kinds.map(({ protocol, listen, endpoints }) => {
    const caller = scene.caller(protocol, listen);
    return (at: readonly number[]) => caller.untilAnsweredBy(...endpoints(at));
  });
  const untilAnsweredBy: Site["untilAnsweredBy"] = async (...at) => {
    for (const answered of callers) await answered(at);
  };
  await untilAnsweredBy(0, 1);
  return { server, envoy, services, untilAnsweredBy };
}

async function follows(scene: XdsScene): Promise<void> {
  const { server, envoy, services, ...site } = await startSite(scene);
  await server.rewrite(services(1, 2));
  await site.untilAnsweredBy(1, 2);
  // A service that comes, and goes.
  const [first] = scene.backends.tcp;
  const third = { name: "third", listen: freePort(), endpoints: [first] };
  await server.rewrite([...services(1, 2), third]);
  const caller = scene.caller("tcp", third.listen);
  await caller.untilAnsweredBy(first);
  scene.spare(caller);
  await server.rewrite(services(1, 2));
  await eventually(
    "nobody serves the third",
    async () => (await envoy.endpoints()).size === 2,
  );
}

async function survives(scene: XdsScene): Promise<void> {
  const { server, services, untilAnsweredBy } = await startSite(scene);
  await server.stop("SIGKILL");
  await sleep(ABSENCE_MS);
  await server.begin();
  await server.rewrite(services(1, 2));
  await untilAnsweredBy(1, 2);
  // Again, politely, and with another catalog in the meantime.
  await server.stop("SIGTERM");
  await server.rewrite(services(0));
  await server.begin();
  await untilAnsweredBy(0);
}

/** Only the kernel can tell Envoy that a port is taken. */
async function rejects(scene: XdsScene): Promise<void> {
  const { server, envoy, services, ...site } = await startSite(scene);
  using squatter = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const endpoints = [scene.backends.tcp[1]];
  const taken = { name: "taken", listen: squatter.addr.port, endpoints };
  await server.rewrite([...services(0, 1), taken]);
  const { type, message } = await scene.rejectAt(server);
  assertEquals(type, "Listener");
  assert(/Address already in use/.test(message), message);
  assert(await envoy.rejected() > 0);
  // What is good goes on and still follows.
  await server.rewrite(services(2));
  await site.untilAnsweredBy(2);
}

/** For any server. */
export const ENVOY_CASES: XdsCases = overEnvoy({
  "balances TCP and UDP, follows endpoints, a new service and its removal":
    follows,
  "loses nobody while the server is killed, restarted, and moved on": survives,
  "tells of a port that is taken, and goes on": rejects,
});
