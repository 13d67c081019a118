/**
 * What the cases of `xds.ts` share: backends that say who they are, and scenes in
 * which, unless a case says so, no call fails and nobody rejects anything.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { Child } from "../../../tests/support/program/child.ts";
import {
  type DiscoveredService,
  type DiscoveryMaker,
  DiscoveryServer,
  type DiscoveryServerConfig,
  type Reject,
} from "../../../tests/support/peers/discovery_server.ts";
import { findPeer } from "../../../tests/support/program/peers.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import { Envoy, type EnvoyConfig } from "../../peers/envoy.ts";
import {
  XDS_CLIENTS,
  XdsClient,
  type XdsClientConfig,
  type XdsClientName,
} from "../../peers/xds_client.ts";
import { eventually } from "../kube_case.ts";
import { Caller, type CallerProtocol } from "./callers.ts";

/** What a case gets. */
export interface XdsContext {
  readonly workspace: Workspace;
  readonly maker: DiscoveryMaker;
  readonly backends: Backends;
}

/** By sentence. */
export type XdsCases = Readonly<
  Record<string, (context: XdsContext) => Promise<void>>
>;

/** Three of each kind, `ip:port`, for all cases. */
export type Backends = Readonly<
  Record<"grpc" | "tcp" | "udp", readonly [string, string, string]>
>;

const EACH = 3;

/** A client that finishes has made more calls. */
const CALLS_MIN = 8;

/** Starts them; they end with all other children. */
export async function startBackends(workspace: Workspace): Promise<Backends> {
  const child = new Child({
    name: "backends",
    command: [
      await findPeer("xds-backend"),
      ...[`-grpc=${EACH}`, `-tcp=${EACH}`, `-udp=${EACH}`],
    ],
    logFile: workspace.path("backends.log"),
  });
  const [, addresses] = await child.untilPrinted(/listening (\{.*\})\n/);
  return JSON.parse(addresses!);
}

/** Whom a case is about. */
interface Who {
  readonly isDelta?: boolean;
  readonly client?: XdsClientName;
}

/** What it starts ends with it. */
export class XdsScene implements AsyncDisposable {
  readonly workspace: Workspace;
  readonly backends: Backends;
  /** The client that the case is about. */
  readonly who: XdsClientName;
  readonly #maker: DiscoveryMaker;
  readonly #isDelta: boolean;
  readonly #started = new AsyncDisposableStack();
  readonly #watched = new Set<DiscoveryServer | Envoy | XdsClient | Caller>();

  constructor({ workspace, maker, backends }: XdsContext, who: Who) {
    this.workspace = workspace;
    this.backends = backends;
    this.who = who.client ?? "grpc-go";
    this.#maker = maker;
    this.#isDelta = who.isDelta ?? false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#started.disposeAsync();
  }

  /** Ends `it` with the scene. */
  use<T extends AsyncDisposable | Disposable>(it: T): T {
    return this.#started.use(it);
  }

  async server(
    services: readonly DiscoveredService[],
    more: Partial<DiscoveryServerConfig> = {},
  ): Promise<DiscoveryServer> {
    const config = { maker: this.#maker, services, ...more };
    return this.#watch(await DiscoveryServer.start(this.workspace, config));
  }

  /** One that has what the server at this port tells it. */
  async envoy(port: number, more: Partial<EnvoyConfig> = {}): Promise<Envoy> {
    const config = { port, isDelta: this.#isDelta, ...more };
    const envoy = this.#watch(await Envoy.start(this.workspace, config));
    await envoy.child.untilReady(`${envoy.adminUrl}/ready`);
    return envoy;
  }

  /** One that calls `echo`, which it finds at the server at this port. */
  async client(
    port: number,
    more: Partial<XdsClientConfig> = {},
  ): Promise<XdsClient> {
    const config = { name: this.who, port, service: "echo", ...more };
    return this.#watch(await XdsClient.start(this.workspace, config));
  }

  caller(protocol: CallerProtocol, port: number): Caller {
    return this.#watch(new Caller(protocol, port));
  }

  /** What becomes of it is not the scene's: it is told so by its case. */
  spare(it: DiscoveryServer | Envoy | XdsClient | Caller): void {
    this.#watched.delete(it);
  }

  /** Waits until calls fail, as they are to. @returns How the first did. */
  async failureOf(client: XdsClient): Promise<string> {
    this.spare(client);
    await client.untilFailed();
    const { errors } = await client.finish();
    return errors[0]!;
  }

  /** Waits until the server learns of a reject, which is meant to be. */
  async rejectAt(server: DiscoveryServer): Promise<Reject> {
    for (const it of this.#watched) {
      if (it instanceof DiscoveryServer || it instanceof Envoy) this.spare(it);
    }
    await eventually(
      "the server learns of it",
      async () => (await server.rejects()).length > 0,
    );
    const [reject] = await server.rejects();
    return reject!;
  }

  async assertAllWell(): Promise<void> {
    for (const it of this.#watched) {
      if (it instanceof Caller) it.assertAllWell();
      else if (it instanceof Envoy) assertEquals(await it.rejected(), 0);
      else if (it instanceof XdsClient) {
        const { calls, failed, errors } = await it.finish();
        assertEquals([failed, errors], [0, []], `of ${calls}`);
        assert(calls > CALLS_MIN, `only ${calls} calls`);
      } else assertEquals(await it.rejects(), []);
    }
  }

  #watch<T extends DiscoveryServer | Envoy | XdsClient | Caller>(it: T): T {
    this.#watched.add(it);
    return this.use(it);
  }
}

/** What is to be so in a scene. */
export type XdsChecks = Readonly<
  Record<string, (scene: XdsScene) => Promise<void>>
>;

/** With Envoy over either protocol. */
export function overEnvoy(checks: XdsChecks): XdsCases {
  return casesOf(checks, {
    "Envoy over SotW": { isDelta: false },
    "Envoy over Delta": { isDelta: true },
  });
}

/** With each of these gRPC clients. */
export function withClients(
  checks: XdsChecks,
  names: readonly XdsClientName[] = XDS_CLIENTS,
): XdsCases {
  return casesOf(
    checks,
    Object.fromEntries(names.map((client) => [client, { client }])),
  );
}

function casesOf(
  checks: XdsChecks,
  subjects: Readonly<Record<string, Who>>,
): XdsCases {
  return Object.fromEntries(
    Object.entries(subjects).flatMap(([subject, who]) =>
      Object.entries(checks).map(([sentence, check]) => [
        `${subject} ${sentence}`,
        async (context: XdsContext) => {
          await using scene = new XdsScene(context, who);
          await check(scene);
          await scene.assertAllWell();
        },
      ])
    ),
  );
}
