/**
 * Clients on a node whose agent relays discovery, and carries their connections
 * to endpoints behind another agent: through HTTP CONNECT on loopback, to
 * addresses that are of no network.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import type {
  DiscoveredService,
  DiscoveryServer,
} from "../../../tests/support/peers/discovery_server.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import { launchAgent } from "../../../tests/support/program/tunnel.ts";
import { Caller } from "./callers.ts";
import {
  overEnvoy,
  withClients,
  type XdsCases,
  type XdsScene,
} from "./xds_case.ts";

/** What a client says that can be told to go through the proxy. */
const ASKS_FOR_PROXY = { tunnel: { http_11_proxy: true } };

/** C-core and grpc-go look at an endpoint's proxy only with this (gRFC A86). */
const GRPC_PROXY = { GRPC_EXPERIMENTAL_XDS_HTTP_CONNECT: "true" };

/** Where addresses behind agents are. */
const VIRTUAL_PREFIX = "fd74:756e:6e65:6c00:";

const FAR = "far.example";

/** Endpoints of `echo` behind the agent far away. */
function echo(...endpoints: readonly string[]): DiscoveredService {
  const via = { host: FAR };
  return { name: "echo", appProtocol: "grpc", endpoints, via };
}

/** Where the near agent relays ADS of this server; the other is far away. */
async function startAgents(
  scene: XdsScene,
  server: DiscoveryServer,
): Promise<number> {
  const port = freePort();
  const at = { agentHost: "127.0.0.1", agentPort: server.agentPort };
  const near = [
    ...["--agent-id=near", `--xds-listen=127.0.0.1:${port}`],
    `--connect-listen=127.0.0.1:${freePort()}`,
  ];
  const far = ["--agent-id=far", `--agent-identifiers=host=${FAR}`];
  const agents = await Promise.all(
    [near, far].map((flags) => launchAgent(scene.workspace, at, "ours", flags)),
  );
  for (const { child, healthUrl } of agents) {
    scene.use({ [Symbol.asyncDispose]: () => child.stop("SIGKILL") });
    await child.untilReady(`${healthUrl}/readyz`);
  }
  return port;
}

async function envoyGoesThrough(scene: XdsScene): Promise<void> {
  const [a, b, c] = scene.backends.tcp;
  const [listen, direct] = [freePort(), freePort()];
  const services = (...endpoints: readonly string[]) => [
    { name: "behind", listen, endpoints, via: { host: FAR } },
    { name: "direct", listen: direct, endpoints: [c] },
  ];
  const server = await scene.server(services(a, b));
  const port = await startAgents(scene, server);
  const envoy = await scene.envoy(port, { metadata: ASKS_FOR_PROXY });
  // It loses calls while the server is away.
  const caller = scene.use(new Caller("tcp", listen));
  const directly = scene.caller("tcp", direct);
  await caller.untilAnsweredBy(a, b);
  await directly.untilAnsweredBy(c);
  const known = (await envoy.endpoints()).get("default/behind:80") ?? [];
  assertEquals(known.length, 2);
  for (const address of known) {
    assert(address.startsWith(VIRTUAL_PREFIX), address);
  }
  await server.rewrite(services(b));
  await caller.untilAnsweredBy(b);
  caller.assertAllWell();
  assertEquals(await server.rejects(), []);
  // A server that comes back finds the relay's clients where they were.
  await server.stop("SIGKILL");
  await server.begin();
  await server.rewrite(services(a));
  await caller.untilAnsweredBy(a);
}

async function clientGoesThrough(scene: XdsScene): Promise<void> {
  const [a, b, c] = scene.backends.grpc;
  const server = await scene.server([echo(a, b)]);
  const client = await scene.client(await startAgents(scene, server), {
    ...{ metadata: ASKS_FOR_PROXY, env: GRPC_PROXY },
  });
  await client.untilAnsweredBy(a, b);
  await server.rewrite([echo(b, c)]);
  await client.untilAnsweredBy(b, c);
}

/** grpc-go asks for what it does not know, as a bootstrap copied from others. */
async function goRejects(scene: XdsScene): Promise<void> {
  const server = await scene.server([echo(scene.backends.grpc[0])]);
  const client = await scene.client(await startAgents(scene, server), {
    metadata: ASKS_FOR_PROXY,
  });
  scene.spare(client);
  await client.untilFailed();
  const { type, message } = await scene.rejectAt(server);
  assertEquals(type, "Cluster");
  assert(/transport.?socket/i.test(message), message);
}

/** Nothing that would end nowhere is told to who cannot go there. */
async function failsAtOnce(scene: XdsScene): Promise<void> {
  const server = await scene.server([echo(scene.backends.grpc[0])]);
  const client = await scene.client(await startAgents(scene, server));
  const failure = await scene.failureOf(client);
  // UNAVAILABLE, and not the end of a deadline.
  assert(failure.startsWith("error 14 "), failure);
}

const SENTENCE = "goes through its agent to endpoints behind another";

export const RELAY_CASES: XdsCases = {
  ...overEnvoy({ [SENTENCE]: envoyGoesThrough }),
  ...withClients({ [SENTENCE]: clientGoesThrough }, ["C-core", "grpc-go"]),
  ...withClients({
    "that asks for a proxy rejects it, visibly": goRejects,
    "that asks for none fails at once": failsAtOnce,
  }, ["grpc-go"]),
};
