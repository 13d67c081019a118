/**
 * A source of the catalog that is not there when the server begins, and clients
 * that have stopped reading. The reference knows neither several sources nor
 * what its clients have taken.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { Child } from "../../../tests/support/program/child.ts";
import {
  type DiscoveredService,
  DiscoveryServer,
  documentOf,
} from "../../../tests/support/peers/discovery_server.ts";
import { Envoy } from "../../peers/envoy.ts";
import { findPeer } from "../../../tests/support/program/peers.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import { XdsClient, type XdsClientName } from "../../peers/xds_client.ts";
import { eventually } from "../kube_case.ts";
import { sleep } from "../proxy_case.ts";
import { run } from "../run_program.ts";
import { Caller } from "./callers.ts";
import {
  assertNoRejects,
  startDiscovery,
  type XdsCases,
  type XdsContext,
} from "./xds_case.ts";

/** Longer than clients wait before they ask the new server at first. */
const ABSENCE_MS = 4_000;

/** What a server waits for its sources, the client's start, and some more. */
const FALLBACK_MS_MAX = 8_000;

/** Those that know of several servers (gRFC A71). */
const FALLING_BACK: readonly XdsClientName[] = ["grpc-go", "C-core"];

const STOPPED_STREAMS = 50;
const CHANGES = 20;

/** For one stream: a response of each kind, and what is made of the next. */
const KEPT_BYTES_MAX = 256 * 1024;

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

/** A catalog of the load client's, in a folder of its own. */
async function writeLoad(workspace: Workspace): Promise<string> {
  const folder = workspace.path("catalog");
  await Deno.mkdir(folder);
  const file = `${folder}/services.json`;
  await run(await findPeer("xds-adsload"), [`-write=${file}`]);
  return file;
}

async function stoppedReaders({ workspace, maker }: XdsContext) {
  const file = await writeLoad(workspace);
  await using server = await DiscoveryServer.start(workspace, { maker, file });
  const adsload = await findPeer("xds-adsload");
  const to = [`-addr=127.0.0.1:${server.port}`, `-catalog=${file}`];
  const stopped = new Child({
    name: "readers that are stopped",
    command: [adsload, ...to, "-hold", `-streams=${STOPPED_STREAMS}`],
    logFile: workspace.path("stopped.log"),
  });
  try {
    await stopped.untilPrinted(/synced/);
    stopped.signal("SIGSTOP");
    // Ends with an error when a change does not reach one of its streams.
    const printed = await run(adsload, [
      ...[...to, "-streams=20", "-phase=full", `-rounds=${CHANGES}`],
      ...["-gap=100ms", "-limit=20s"],
    ]);
    const { errs } = JSON.parse(new TextDecoder().decode(printed));
    assertEquals(errs, 0);
    const clients = await server.clients();
    assertEquals(clients.length, STOPPED_STREAMS, "streams of the stopped");
    const kept = Math.max(...clients.map(({ keptBytes }) => keptBytes));
    assert(kept < KEPT_BYTES_MAX, `${kept} bytes are kept for one stream`);
    stopped.signal("SIGCONT");
    await eventually(
      "those that go on have everything",
      async () =>
        (await server.clients()).every(({ kinds }) =>
          kinds.every(({ state }) => state === "synced")
        ),
    );
    await assertNoRejects(server);
  } finally {
    await stopped.stop("SIGKILL");
  }
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
  "readers that are stopped hold up nobody and cost little": stoppedReaders,
};
