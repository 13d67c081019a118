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
import {
  XDS_CLIENTS,
  XdsClient,
  type XdsClientName,
} from "../../peers/xds_client.ts";
import { eventually } from "../kube_case.ts";
import {
  assertNoRejects,
  startDiscovery,
  type XdsCases,
  type XdsContext,
} from "./xds_case.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";

/** Longer than any client waits before it tries the server again at first. */
const ABSENCE_MS = 2_000;

function echo(...endpoints: readonly string[]): DiscoveredService {
  return { name: "echo", appProtocol: "grpc", endpoints };
}

/** The calls that it made all went well, and there were some. */
async function assertAllWell(client: XdsClient): Promise<void> {
  const { calls, failed, errors } = await client.finish();
  assert(calls > 8, `only ${calls} calls`);
  assertEquals([failed, errors], [0, []]);
}

/** A client that balances over `a` and `b`; there is `c`, too. */
interface Site {
  readonly server: DiscoveryServer;
  readonly client: XdsClient;
  readonly a: string;
  readonly b: string;
  readonly c: string;
}

type Check = (site: Site) => Promise<void>;

/** No call of the client may fail, whatever is checked. */
async function onSite(
  context: XdsContext,
  name: XdsClientName,
  check: Check,
): Promise<void> {
  const { workspace, backends } = context;
  const [a, b, c] = backends.grpc as [string, string, string];
  await using server = await startDiscovery(context, [echo(a, b)]);
  const { port } = server;
  const service = "echo";
  await using client = await XdsClient.start(workspace, {
    name,
    port,
    service,
  });
  await client.untilAnsweredBy(a, b);
  await check({ server, client, a, b, c });
  await assertAllWell(client);
}

async function follows({ server, client, a, b, c }: Site): Promise<void> {
  await server.rewrite([echo(b, c)]);
  await client.untilAnsweredBy(b, c);
  await server.rewrite([echo(a)]);
  await client.untilAnsweredBy(a);
  await assertNoRejects(server);
}

async function survives({ server, client, a, b, c }: Site): Promise<void> {
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
  await assertNoRejects(server);
}

async function rejects({ server, client, a, b, c }: Site): Promise<void> {
  await server.rewrite([{ ...echo(b, c), spoilt: true }]);
  await eventually(
    "the server learns of it",
    async () => (await server.rejects()).length > 0,
  );
  const [reject] = await server.rejects();
  assertEquals(reject?.type, "ClusterLoadAssignment");
  assert(reject!.message.length > 0);
  await client.untilAnsweredBy(a, b);
  await server.rewrite([echo(c)]);
  await client.untilAnsweredBy(c);
}

const BY_SENTENCE = {
  "balances over two backends and follows their changes": follows,
  "loses no call while the server is killed, restarted, and moved on": survives,
};

/** For any server. */
export const GRPC_CASES: XdsCases = casesOf(BY_SENTENCE);

/** For one that sends what it is told to. */
export const SPOILT_GRPC_CASES: XdsCases = casesOf({
  "rejects spoilt content, visibly, and keeps what it had": rejects,
});

function casesOf(bySentence: Readonly<Record<string, Check>>): XdsCases {
  return Object.fromEntries(
    XDS_CLIENTS.flatMap((name) =>
      Object.entries(bySentence).map(([sentence, check]) => [
        `${name} ${sentence}`,
        (context: XdsContext) => onSite(context, name, check),
      ])
    ),
  );
}
