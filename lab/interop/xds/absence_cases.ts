/**
 * A source of the catalog that is not there when the server begins. The
 * reference does not know several sources.
 *
 * @module
 */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import {
  type DiscoveredService,
  documentOf,
} from "../../../tests/support/peers/discovery_server.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import {
  overEnvoy,
  withClients,
  type XdsCases,
  type XdsScene,
} from "./xds_case.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";

/** Longer than clients wait before they ask the new server at first. */
const ABSENCE_MS = 4_000;

/** What a server waits for its sources, the client's start, and some more. */
const FALLBACK_MS_MAX = 8_000;

/** A URL that answers with services, while it does. */
class HttpSource implements AsyncDisposable {
  readonly port: number = freePort();
  #server: Deno.HttpServer | undefined;

  get flags(): readonly string[] {
    return [`--services-url=http://127.0.0.1:${this.port}/`];
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

function echo(endpoint: string): DiscoveredService {
  return { name: "echo", appProtocol: "grpc", endpoints: [endpoint] };
}

async function sourceAway(scene: XdsScene): Promise<void> {
  const { tcp: [a, b], grpc } = scene.backends;
  const listen = freePort();
  const web = (endpoint: string) => ({
    ...{ name: "web", listen, endpoints: [endpoint] },
  });
  const source = scene.use(new HttpSource());
  source.open([web(a), echo(grpc[0])]);
  // Another source is there all the time: what it has is not all there is.
  const server = await scene.server([
    { name: "other", listen: freePort(), endpoints: [b] },
  ], { flags: source.flags });
  const envoy = await scene.envoy(server.port);
  const caller = scene.caller("tcp", listen);
  const client = await scene.client(server.port);
  await caller.untilAnsweredBy(a);
  await client.untilAnsweredBy(grpc[0]);
  await server.stop("SIGKILL");
  await source.close();
  await server.begin();
  await sleep(ABSENCE_MS);
  assertEquals((await envoy.endpoints()).size, 3, "clusters of Envoy");
  source.open([web(b), echo(grpc[1])]);
  await caller.untilAnsweredBy(b);
  await client.untilAnsweredBy(grpc[1]);
}

/** A server that knows nothing yet says so, and its clients ask another one. */
async function fallsBack(scene: XdsScene): Promise<void> {
  const { grpc } = scene.backends;
  const source = scene.use(new HttpSource());
  const late = await scene.server([], { flags: source.flags });
  const server = await scene.server([echo(grpc[0])]);
  const began = Date.now();
  const client = await scene.client(late.port, { fallbackPort: server.port });
  await client.untilAnsweredBy(grpc[0]);
  const tookMs = Date.now() - began;
  assert(tookMs < FALLBACK_MS_MAX, `it took ${tookMs} ms`);
  // grpc-go fails calls until then, and asks the first one ever more seldom.
  if (scene.who === "grpc-go") return scene.spare(client);
  // The one that it would rather have lets it in when it can.
  source.open([echo(grpc[1])]);
  await client.untilAnsweredBy(grpc[1]);
}

/** It need not conclude it after 15 s of silence (gRFC A88). */
async function learnsOfAbsence(scene: XdsScene): Promise<void> {
  const server = await scene.server([]);
  const client = await scene.client(server.port, {
    service: "nobody",
    env: { GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING: "true" },
  });
  const failure = await scene.failureOf(client);
  // UNAVAILABLE, and not the end of a deadline.
  assert(failure.startsWith("error 14 "), failure);
  assertStringIncludes(failure, "there is no such resource");
}

export const ABSENCE_CASES: XdsCases = {
  ...withClients({
    "learns at once that there is no such service": learnsOfAbsence,
  }, ["C-core"]),
  // Those that know of several servers (gRFC A71).
  ...withClients({
    "asks its other server while the first one's source is away": fallsBack,
  }, ["grpc-go", "C-core"]),
  ...overEnvoy({
    "and grpc-go keep what they had while a source is away": sourceAway,
  }),
};
