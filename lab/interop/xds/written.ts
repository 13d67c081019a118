/**
 * Services as docs/services.md has them, for what the reference does not know.
 *
 * @module
 */

import type { DiscoveryServer } from "../../../tests/support/peers/discovery_server.ts";
import { startDiscovery, type XdsContext } from "./xds_case.ts";

/** A service of docs/services.md. */
export type Written = Readonly<Record<string, unknown>>;

/** At these `ip:port`. */
export function endpoints(
  ...addresses: readonly string[]
): readonly Written[] {
  return addresses.map((text) => {
    const { hostname, port } = new URL(`http://${text}`);
    return { address: hostname, port: Number(port) };
  });
}

/** They are the catalog from now on. */
export async function rewrite(
  server: DiscoveryServer,
  ...services: readonly Written[]
): Promise<void> {
  await server.rewriteAs(JSON.stringify({ services }));
}

/** A server with these. */
export async function started(
  context: XdsContext,
  ...services: readonly Written[]
): Promise<DiscoveryServer> {
  const server = await startDiscovery(context, []);
  await rewrite(server, ...services);
  return server;
}
