/**
 * A tunnel with discovery whose catalog says what a test says, and clients of it.
 *
 * @module
 */

import { AdminClient } from "../../../admin/ask/admin_client.ts";
import type { CatalogPart } from "../../../services/catalog/model/source.ts";

import type { CertificatePair } from "../certificates/throwaway_ca.ts";
import { ScriptedSource } from "../watch/scripted_source.ts";
import { portOf, Tunnel, type TunnelConfig } from "../rigs/tunnel_harness.ts";
import { XdsProbe } from "./xds_probe.ts";
import type { DiscoveryServerOptions } from "../../../services/discovery/serving/discovery.ts";

/** See the module description. */
export class DiscoveryRig implements AsyncDisposable {
  readonly #probes: XdsProbe[] = [];

  private constructor(
    readonly tunnel: Tunnel,
    readonly source: ScriptedSource,
    /** With the socket of the admin API. */
    readonly folder: string,
  ) {}

  /** A server whose catalog has said nothing yet. */
  static async open(
    config: TunnelConfig = {},
    options: Partial<DiscoveryServerOptions> = {},
  ): Promise<DiscoveryRig> {
    const source = new ScriptedSource("script");
    const discovery: DiscoveryServerOptions = {
      sources: [source],
      listen: { hostname: "127.0.0.1", port: 0 },
      windowMinMs: 50,
      windowMaxMs: 1_000,
      // No agent has to come back to a server that is new.
      settleMs: 0,
      ...options,
    };
    const folder = await Deno.makeTempDir();
    const tunnel = await Tunnel.open({
      ...config,
      server: {
        ...config.server,
        discovery,
        adminAccess: { socket: `${folder}/admin.sock` },
      },
    });
    return new DiscoveryRig(tunnel, source, folder);
  }

  /** A server whose catalog is this, and whole. */
  static async serving(
    part: CatalogPart,
    config: TunnelConfig = {},
    options: Partial<DiscoveryServerOptions> = {},
  ): Promise<DiscoveryRig> {
    const rig = await DiscoveryRig.open(config, options);
    rig.source.sink.set(part);
    rig.source.sink.synced();
    return rig;
  }

  get port(): number {
    return portOf(this.tunnel.server.addresses.discovery!);
  }

  /** A connection to the port on loopback. */
  async plain(): Promise<XdsProbe> {
    return this.#keep(await XdsProbe.plain(this.port));
  }

  /** A connection to the agent port. */
  async tls(pair?: CertificatePair): Promise<XdsProbe> {
    const { agentPort } = this.tunnel;
    return this.#keep(
      await XdsProbe.tls(agentPort, pair === undefined ? {} : { pair }),
    );
  }

  /** What the admin API answers at a path, as data. */
  async admin(path: string): Promise<unknown> {
    const address = {
      kind: "unix",
      path: `${this.folder}/admin.sock`,
    } as const;
    return await new AdminClient("server", address).get(path);
  }

  /** The value of one series of discovery. */
  metric(name: string): Promise<number> {
    return this.tunnel.metric(`tunnel_server_discovery_${name}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const probe of this.#probes) probe[Symbol.dispose]();
    await this.tunnel[Symbol.asyncDispose]();
    await Deno.remove(this.folder, { recursive: true });
  }

  #keep(probe: XdsProbe): XdsProbe {
    this.#probes.push(probe);
    return probe;
  }
}
