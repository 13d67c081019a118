/**
 * gRPC applications that find their backends by xDS.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import type {
  DiscoveredService,
  DiscoveryServer,
} from "../../../tests/support/peers/discovery_server.ts";
import type { XdsClient } from "../../peers/xds_client.ts";
import { withClients, type XdsCases, type XdsScene } from "./xds_case.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";

/** Longer than any client waits before it tries the server again at first. */
const ABSENCE_MS = 2_000;

function echo(...endpoints: readonly string[]): DiscoveredService {
  return { name: "echo", appProtocol: "grpc", endpoints };
}

/** A client that balances over the first two backends. */
interface Site {
  readonly server: DiscoveryServer;
  readonly client: XdsClient;
}

async function startSite(scene: XdsScene): Promise<Site> {
  const [a, b] = scene.backends.grpc;
  const server = await scene.server([echo(a, b)]);
  const client = await scene.client(server.port);
  await client.untilAnsweredBy(a, b);
  return { server, client };
}

async function follows(scene: XdsScene): Promise<void> {
  const { server, client } = await startSite(scene);
  const [a, b, c] = scene.backends.grpc;
  await server.rewrite([echo(b, c)]);
  await client.untilAnsweredBy(b, c);
  await server.rewrite([echo(a)]);
  await client.untilAnsweredBy(a);
}

async function survives(scene: XdsScene): Promise<void> {
  const { server, client } = await startSite(scene);
  const [a, b, c] = scene.backends.grpc;
  await server.stop("SIGKILL");
  await sleep(ABSENCE_MS);
  await server.begin();
  await server.rewrite([echo(b, c)]);
  await client.untilAnsweredBy(b, c);
  // Again, politely, and with another catalog in the meantime.
  await server.stop("SIGTERM");
  await server.rewrite([echo(c, a)]);
  await server.begin();
  await client.untilAnsweredBy(c, a);
}

async function rejects(scene: XdsScene): Promise<void> {
  const { server, client } = await startSite(scene);
  const [a, b, c] = scene.backends.grpc;
  await server.rewrite([{ ...echo(b, c), spoilt: true }]);
  const { type, message } = await scene.rejectAt(server);
  assertEquals(type, "ClusterLoadAssignment");
  assert(message.length > 0);
  await client.untilAnsweredBy(a, b);
  await server.rewrite([echo(c)]);
  await client.untilAnsweredBy(c);
}

/** For any server. */
export const GRPC_CASES: XdsCases = withClients({
  "balances over two backends and follows their changes": follows,
  "loses no call while the server is killed, restarted, and moved on": survives,
});

/** For one that sends what it is told to. */
export const SPOILT_GRPC_CASES: XdsCases = withClients({
  "rejects spoilt content, visibly, and keeps what it had": rejects,
});
