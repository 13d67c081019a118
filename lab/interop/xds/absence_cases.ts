/**
 * A source of the catalog that is not there when the server begins. The
 * reference does not know several sources.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import {
  type DiscoveredService,
  documentOf,
} from "../../../tests/support/peers/discovery_server.ts";
import { Envoy } from "../../peers/envoy.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import { XdsClient, type XdsClientName } from "../../peers/xds_client.ts";
import { Caller } from "./callers.ts";
import {
  assertNoRejects,
  startDiscovery,
  type XdsCases,
  type XdsContext,
} from "./xds_case.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";

/** Longer than clients wait before they ask the new server at first. */
const ABSENCE_MS = 4_000;

/** What a server waits for its sources, the client's start, and some more. */
const FALLBACK_MS_MAX = 8_000;

/** Those that know of several servers (gRFC A71). */
const FALLING_BACK: readonly XdsClientName[] = ["grpc-go", "C-core"];

/** A URL that answers with services, while it does. */
class HttpSource {
  readonly port: number = freePort();
  #server: Deno.HttpServer | undefined;

  get url(): string {
    return `http://127.0.0.1:${this.port}/`;
  }

  open(services: readonly DiscoveredService[]): void {
    const document = documentOf(services);
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: this.port, onListen: () => {} },
      () => new Response(document),
    );
  }

  async close(): Promise<void> {
    await this.#server?.shutdown();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

async function sourceAway(context: XdsContext, isDelta: boolean) {
  const { workspace, backends: { tcp, grpc } } = context;
  const [a, b] = tcp as [string, string];
  const listen = freePort();
  const web = (endpoint: string): DiscoveredService => ({
    ...{ name: "web", listen, endpoints: [endpoint] },
  });
  await using source = new HttpSource();
  const echo = (endpoint: string): DiscoveredService => ({
    ...{ name: "echo", appProtocol: "grpc", endpoints: [endpoint] },
  });
  source.open([web(a), echo(grpc[0]!)]);
  // Another source is there all the time: what it has is not all there is.
  await using server = await startDiscovery(context, [
    { name: "other", listen: freePort(), endpoints: [b] },
  ], { flags: [`--services-url=${source.url}`] });
  const { port } = server;
  await using envoy = await Envoy.start(workspace, { port, isDelta });
  await envoy.child.untilReady(`${envoy.adminUrl}/ready`);
  await using caller = Caller.tcp(listen);
  await using client = await XdsClient.start(workspace, {
    ...{ name: "grpc-go", port, service: "echo" },
  });
  await caller.untilAnsweredBy(a);
  await client.untilAnsweredBy(grpc[0]!);
  await server.stop("SIGKILL");
  await source.close();
  await server.begin();
  await sleep(ABSENCE_MS);
  assertEquals((await envoy.endpoints()).size, 3, "clusters of Envoy");
  source.open([web(b), echo(grpc[1]!)]);
  await caller.untilAnsweredBy(b);
  await client.untilAnsweredBy(grpc[1]!);
  caller.assertAllWell();
  const { failed, errors } = await client.finish();
  assertEquals([failed, errors], [0, []]);
  assertEquals(await envoy.rejected(), 0);
  await assertNoRejects(server);
}

/** A server that knows nothing yet says so, and its clients ask another one. */
async function fallsBack(
  context: XdsContext,
  name: XdsClientName,
): Promise<void> {
  const { workspace, backends: { grpc } } = context;
  const echo = (endpoint: string): DiscoveredService => ({
    ...{ name: "echo", appProtocol: "grpc", endpoints: [endpoint] },
  });
  await using source = new HttpSource();
  await using late = await startDiscovery(context, [], {
    flags: [`--services-url=${source.url}`],
  });
  await using server = await startDiscovery(context, [echo(grpc[0]!)]);
  const began = Date.now();
  await using client = await XdsClient.start(workspace, {
    ...{ name, port: late.port, fallbackPort: server.port, service: "echo" },
  });
  await client.untilAnsweredBy(grpc[0]!);
  const tookMs = Date.now() - began;
  assert(tookMs < FALLBACK_MS_MAX, `it took ${tookMs} ms`);
  // grpc-go fails calls until then, and asks the first one ever more seldom.
  if (name === "grpc-go") return;
  // The one that it would rather have lets it in when it can.
  source.open([echo(grpc[1]!)]);
  await client.untilAnsweredBy(grpc[1]!);
  const { failed, errors } = await client.finish();
  assertEquals([failed, errors], [0, []]);
}

/** It need not conclude it after 15 s of silence (gRFC A88). */
async function learnsOfAbsence(context: XdsContext): Promise<void> {
  await using server = await startDiscovery(context, []);
  await using client = await XdsClient.start(context.workspace, {
    ...{ name: "C-core", port: server.port, service: "nobody" },
    env: { GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING: "true" },
  });
  await client.untilFailed();
  const { errors } = await client.finish();
  // UNAVAILABLE, and not the end of a deadline.
  assert(errors[0]!.startsWith("error 14 "), errors[0]);
  assert(errors[0]!.includes("there is no such resource"), errors[0]);
  await assertNoRejects(server);
}

export const ABSENCE_CASES: XdsCases = {
  "C-core learns at once that there is no such service": learnsOfAbsence,
  ...Object.fromEntries(
    FALLING_BACK.map((name) => [
      `${name} asks its other server while the first one's source is away`,
      (context: XdsContext) => fallsBack(context, name),
    ]),
  ),
  "Envoy over SotW and grpc-go keep what they had while a source is away": (
    context,
  ) => sourceAway(context, false),
  "Envoy over Delta and grpc-go keep what they had while a source is away": (
    context,
  ) => sourceAway(context, true),
};
