/**
 * What the cases of `xds.ts` share: a discovery server of either maker, and
 * backends that say who they are.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { Child } from "../../../tests/support/program/child.ts";
import {
  type DiscoveredService,
  type DiscoveryMaker,
  DiscoveryServer,
  type DiscoveryServerConfig,
} from "../../../tests/support/peers/discovery_server.ts";
import { findPeer } from "../../../tests/support/program/peers.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";

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
export interface Backends {
  readonly grpc: readonly string[];
  readonly tcp: readonly string[];
  readonly udp: readonly string[];
}

const EACH = 3;

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

/** A server of the context's maker. */
export async function startDiscovery(
  { workspace, maker }: XdsContext,
  services: readonly DiscoveredService[],
  more: Partial<DiscoveryServerConfig> = {},
): Promise<DiscoveryServer> {
  return await DiscoveryServer.start(workspace, { maker, services, ...more });
}

/** Nobody has rejected anything. */
export async function assertNoRejects(server: DiscoveryServer): Promise<void> {
  assertEquals(await server.rejects(), []);
}
