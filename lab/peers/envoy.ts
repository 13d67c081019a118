/**
 * Envoy, configured by nothing but a discovery server.
 *
 * @module
 */

import { Child } from "../../tests/support/program/child.ts";
import { findEnvoy } from "../../tests/support/program/peer_packages.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";

/** How one is started. */
export interface EnvoyConfig {
  /** Where ADS is on 127.0.0.1. */
  readonly port: number;
  readonly isDelta?: boolean;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Where it is; nowhere unless given. */
  readonly zone?: string;
}

/** See the module description. */
export class Envoy implements AsyncDisposable {
  private constructor(
    readonly child: Child,
    readonly adminUrl: string,
  ) {}

  /** Starts one, and waits for nothing but its admin port. */
  static async start(
    workspace: Workspace,
    config: EnvoyConfig,
  ): Promise<Envoy> {
    const adminPort = freePort();
    const file = workspace.path("envoy.json");
    await Deno.writeTextFile(
      file,
      JSON.stringify(bootstrapOf(config, adminPort)),
    );
    const child = new Child({
      name: "envoy",
      command: [
        ...[await findEnvoy(), "-c", file, "--use-dynamic-base-id"],
        ...["--concurrency", "1", "-l", "warning"],
      ],
      logFile: workspace.path("envoy.log"),
    });
    const adminUrl = `http://127.0.0.1:${adminPort}`;
    // /ready waits for the discovery server, /server_info does not.
    await child.untilReady(`${adminUrl}/server_info`);
    return new Envoy(child, adminUrl);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.child.stop("SIGKILL");
  }

  /** Updates of all types that it rejected. */
  async rejected(): Promise<number> {
    return await this.sum("update_rejected$");
  }

  /** The sum of all counters whose name matches. */
  async sum(pattern: string): Promise<number> {
    const filter = encodeURIComponent(pattern);
    const response = await fetch(
      `${this.adminUrl}/stats?format=json&filter=${filter}`,
    );
    const { stats } = await response.json() as {
      stats: readonly { readonly value?: number }[];
    };
    return stats.reduce((sum, { value = 0 }) => sum + value, 0);
  }

  /** Addresses of the endpoints of each cluster that discovery has given. */
  async endpoints(): Promise<ReadonlyMap<string, readonly string[]>> {
    const response = await fetch(`${this.adminUrl}/clusters?format=json`);
    const { cluster_statuses: clusters = [] } = await response
      .json() as ClusterList;
    return new Map(
      clusters.filter((each) => each.added_via_api).map((each) => [
        each.name,
        (each.host_statuses ?? []).map(({ address }) => {
          const { address: ip, port_value: port } = address.socket_address;
          return `${ip}:${port}`;
        }).sort(),
      ]),
    );
  }
}

interface ClusterList {
  readonly cluster_statuses?: readonly {
    readonly name: string;
    readonly added_via_api?: boolean;
    readonly host_statuses?: readonly {
      readonly address: {
        readonly socket_address: { address: string; port_value: number };
      };
    }[];
  }[];
}

/** HTTP/2 to the discovery server, and PINGs that notice when it vanished. */
const ADS_PROTOCOL = {
  "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
    "@type":
      "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
    explicit_http_config: {
      http2_protocol_options: {
        connection_keepalive: { interval: "30s", timeout: "5s" },
      },
    },
  },
};

function bootstrapOf(
  { port, isDelta = false, metadata = {}, zone }: EnvoyConfig,
  adminPort: number,
): unknown {
  const loopback = (port: number) => ({
    socket_address: { address: "127.0.0.1", port_value: port },
  });
  const source = { resource_api_version: "V3", ads: {} };
  return {
    node: {
      ...{ id: "envoy-1", cluster: "test", metadata },
      ...zone === undefined ? {} : { locality: { zone } },
    },
    admin: { address: loopback(adminPort) },
    dynamic_resources: {
      ads_config: {
        api_type: isDelta ? "DELTA_GRPC" : "GRPC",
        transport_api_version: "V3",
        set_node_on_first_message_only: true,
        grpc_services: [{ envoy_grpc: { cluster_name: "discovery" } }],
      },
      cds_config: source,
      lds_config: source,
    },
    static_resources: {
      clusters: [{
        name: "discovery",
        type: "STATIC",
        connect_timeout: "1s",
        typed_extension_protocol_options: ADS_PROTOCOL,
        load_assignment: {
          cluster_name: "discovery",
          endpoints: [{
            lb_endpoints: [{ endpoint: { address: loopback(port) } }],
          }],
        },
      }],
    },
  };
}
