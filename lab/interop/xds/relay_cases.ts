/**
 * Clients on a node whose agent relays discovery, and carries their connections
 * to endpoints behind another agent: through HTTP CONNECT on loopback, to
 * addresses that are of no network.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import type { Child } from "../../../tests/support/program/child.ts";
import type {
  DiscoveredService,
  DiscoveryServer,
} from "../../../tests/support/peers/discovery_server.ts";
import { Envoy } from "../../peers/envoy.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import { launchAgent } from "../../../tests/support/program/tunnel.ts";
import { XdsClient, type XdsClientName } from "../../peers/xds_client.ts";
import { eventually } from "../kube_case.ts";
import { Caller } from "./callers.ts";
import {
  assertNoRejects,
  startDiscovery,
  type XdsCases,
  type XdsContext,
} from "./xds_case.ts";

/** What a client says that can be told to go through the proxy. */
const ASKS_FOR_PROXY = { tunnel: { http_11_proxy: true } };

/** C-core and grpc-go look at an endpoint's proxy only with this (gRFC A86). */
const GRPC_PROXY = { GRPC_EXPERIMENTAL_XDS_HTTP_CONNECT: "true" };

/** Where addresses behind agents are. */
const VIRTUAL_PREFIX = "fd74:756e:6e65:6c00:";

const FAR = "far.example";

function behindAgent(
  name: string,
  more: Partial<DiscoveredService>,
): DiscoveredService {
  return { name, endpoints: [], via: { host: FAR }, ...more };
}

/** A server, the agent of the clients' node, and one far away. */
class Nodes implements AsyncDisposable {
  private constructor(
    readonly server: DiscoveryServer,
    /** Where the near agent relays ADS. */
    readonly port: number,
    readonly near: Child,
    readonly far: Child,
  ) {}

  static async start(
    context: XdsContext,
    services: readonly DiscoveredService[],
  ): Promise<Nodes> {
    const { workspace } = context;
    const server = await startDiscovery(context, services);
    const port = freePort();
    const at = { agentHost: "127.0.0.1", agentPort: server.agentPort };
    const near = await launchAgent(workspace, at, "ours", [
      ...["--agent-id=near", `--xds-listen=127.0.0.1:${port}`],
      `--connect-listen=127.0.0.1:${freePort()}`,
    ]);
    const far = await launchAgent(workspace, at, "ours", [
      ...["--agent-id=far", `--agent-identifiers=host=${FAR}`],
    ]);
    for (const { child, healthUrl } of [near, far]) {
      await child.untilReady(`${healthUrl}/readyz`);
    }
    return new Nodes(server, port, near.child, far.child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      [this.near, this.far, this.server.child].map((it) => it.stop("SIGKILL")),
    );
  }
}

async function envoyGoesThrough(
  context: XdsContext,
  isDelta: boolean,
): Promise<void> {
  const { workspace, backends: { tcp } } = context;
  const [a, b, c] = tcp as [string, string, string];
  const [listen, direct] = [freePort(), freePort()];
  const services = (...endpoints: readonly string[]) => [
    behindAgent("behind", { listen, endpoints }),
    { name: "direct", listen: direct, endpoints: [c] },
  ];
  await using nodes = await Nodes.start(context, services(a, b));
  const { port, server } = nodes;
  await using envoy = await Envoy.start(workspace, {
    ...{ port, isDelta, metadata: ASKS_FOR_PROXY },
  });
  await envoy.child.untilReady(`${envoy.adminUrl}/ready`);
  await using caller = Caller.tcp(listen);
  await using directly = Caller.tcp(direct);
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
  assertEquals(await envoy.rejected(), 0);
  await assertNoRejects(server);
  // A server that comes back finds the relay's clients where they were.
  await server.stop("SIGKILL");
  await server.begin();
  await server.rewrite(services(a));
  await caller.untilAnsweredBy(a);
  directly.assertAllWell();
  assertEquals(await envoy.rejected(), 0);
}

async function clientGoesThrough(
  context: XdsContext,
  name: XdsClientName,
): Promise<void> {
  const { workspace, backends: { grpc } } = context;
  const [a, b, c] = grpc as [string, string, string];
  const echo = (...endpoints: readonly string[]) => [
    behindAgent("echo", { appProtocol: "grpc", endpoints }),
  ];
  await using nodes = await Nodes.start(context, echo(a, b));
  const { port, server } = nodes;
  await using client = await XdsClient.start(workspace, {
    ...{ name, port, service: "echo" },
    ...{ metadata: ASKS_FOR_PROXY, env: GRPC_PROXY },
  });
  await client.untilAnsweredBy(a, b);
  await server.rewrite(echo(b, c));
  await client.untilAnsweredBy(b, c);
  await assertNoRejects(server);
  const { failed, errors } = await client.finish();
  assertEquals([failed, errors], [0, []]);
}

/** grpc-go asks for what it does not know, as a bootstrap copied from others. */
async function goRejects(context: XdsContext): Promise<void> {
  const { workspace, backends: { grpc } } = context;
  const [a] = grpc as [string];
  await using nodes = await Nodes.start(context, [
    behindAgent("echo", { appProtocol: "grpc", endpoints: [a] }),
  ]);
  const { port, server } = nodes;
  await using client = await XdsClient.start(workspace, {
    ...{ name: "grpc-go", port, service: "echo", metadata: ASKS_FOR_PROXY },
  });
  await client.untilFailed();
  await eventually(
    "the server learns of it",
    async () => (await server.rejects()).length > 0,
  );
  const [reject] = await server.rejects();
  assertEquals(reject!.type, "Cluster");
  assert(/transport.?socket/i.test(reject!.message), reject!.message);
}

/** Nothing that would end nowhere is told to who cannot go there. */
async function failsAtOnce(context: XdsContext): Promise<void> {
  const { workspace, backends: { grpc } } = context;
  await using nodes = await Nodes.start(context, [
    behindAgent("echo", { appProtocol: "grpc", endpoints: [grpc[0]!] }),
  ]);
  const { port, server } = nodes;
  await using client = await XdsClient.start(workspace, {
    ...{ name: "grpc-go", port, service: "echo" },
  });
  await client.untilFailed();
  const { errors } = await client.finish();
  // UNAVAILABLE, and not the end of a deadline.
  assert(errors[0]!.startsWith("error 14 "), errors[0]);
  await assertNoRejects(server);
}

export const RELAY_CASES: XdsCases = {
  "Envoy over SotW goes through its agent to endpoints behind another": (
    context,
  ) => envoyGoesThrough(context, false),
  "Envoy over Delta goes through its agent to endpoints behind another": (
    context,
  ) => envoyGoesThrough(context, true),
  "C-core goes through its agent to endpoints behind another": (context) =>
    clientGoesThrough(context, "C-core"),
  "grpc-go goes through its agent to endpoints behind another": (context) =>
    clientGoesThrough(context, "grpc-go"),
  "grpc-go that asks for a proxy rejects it, visibly": goRejects,
  "grpc-go that asks for none fails at once": failsAtOnce,
};
