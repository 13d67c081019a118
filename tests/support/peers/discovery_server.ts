/**
 * A discovery server on a catalog file that may be rewritten at any time: ours,
 * or the reference on go-control-plane. Both read the same file, serve ADS
 * without TLS on loopback, and can be killed and started again where they were.
 *
 * @module
 */

import { AdminClient } from "../../../admin/ask/admin_client.ts";
import {
  type ClientSummary,
  discoveryPath,
} from "../../../services/discovery/status/client_answers.ts";
import { Child } from "../program/child.ts";
import { findPeer } from "../program/peers.ts";
import { freePort } from "../program/ports.ts";
import { ourCommand } from "../program/tunnel.ts";
import type { Workspace } from "../program/workspace.ts";

/** `gcp-linear` sends what changed, `gcp-snapshot` everything of the type. */
export type DiscoveryMaker = "ours" | "gcp-linear" | "gcp-snapshot";

/** A service with one port, of which the endpoints have their own. */
export interface DiscoveredService {
  readonly name: string;
  readonly protocol?: "tcp" | "udp";
  readonly appProtocol?: "bytes" | "http" | "grpc";
  /** Where Envoy serves it, on 127.0.0.1. */
  readonly listen?: number;
  /** `ip:port` each. */
  readonly endpoints: readonly string[];
  /** As in the file; ours alone knows these: of its port, */
  readonly routes?: readonly unknown[];
  /** of itself, */
  readonly affinity?: unknown;
  readonly policy?: unknown;
  /** of all endpoints, and of one after the other. */
  readonly via?: unknown;
  readonly each?: readonly Readonly<Record<string, unknown>>[];
  /** Makes content that clients reject; ours has none. */
  readonly spoilt?: boolean;
}

/** Content that a client would not have. */
export interface Reject {
  readonly node: string;
  /** As `ClusterLoadAssignment`. */
  readonly type: string;
  readonly message: string;
}

/** How one is started. */
export interface DiscoveryServerConfig {
  readonly maker: DiscoveryMaker;
  readonly services?: readonly DiscoveredService[];
  /** Prints nothing of requests: it is measured. */
  readonly isQuiet?: boolean;
  /** In place of a catalog of its own: the file is there already. */
  readonly file?: string;
  /** For ours. */
  readonly flags?: readonly string[];
}

/** See the module description. */
export class DiscoveryServer implements AsyncDisposable {
  readonly maker: DiscoveryMaker;
  readonly port: number = freePort();
  readonly adminPort: number = freePort();
  readonly agentPort: number = freePort();
  readonly file: string;
  /** Of the process that runs, or ran last. */
  child!: Child;
  readonly #workspace: Workspace;
  readonly #config: DiscoveryServerConfig;
  readonly #logFile: string;
  readonly #healthPort: number = freePort();
  readonly #socket: string;
  readonly #admin: string;

  private constructor(
    workspace: Workspace,
    config: DiscoveryServerConfig,
    file: string,
  ) {
    this.#workspace = workspace;
    this.#config = config;
    this.maker = config.maker;
    this.file = file;
    this.#logFile = workspace.path(`discovery-${config.maker}.log`);
    this.#socket = workspace.path("front.sock");
    this.#admin = workspace.path("admin.sock");
  }

  /** Starts one, and waits until it listens. */
  static async start(
    workspace: Workspace,
    config: DiscoveryServerConfig,
  ): Promise<DiscoveryServer> {
    let { file } = config;
    if (file === undefined) {
      // A folder of its own: the servers watch the one that their file is in.
      const folder = workspace.path("catalog");
      await Deno.mkdir(folder);
      file = `${folder}/services.json`;
      await Deno.writeTextFile(file, documentOf(config.services ?? []));
    }
    const server = new DiscoveryServer(workspace, config, file);
    await server.begin();
    return server;
  }

  get isOurs(): boolean {
    return this.maker === "ours";
  }

  /** Starts it again after {@linkcode stop}, on the same ports. */
  async begin(): Promise<void> {
    this.child = new Child({
      name: `discovery of ${this.maker}`,
      command: this.isOurs ? this.#ourCommand() : await this.#reference(),
      logFile: this.#logFile,
    });
    // Whoever was there before it may have said the same into the same file.
    await this.child.untilListening(this.port);
  }

  async stop(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    await this.child.stop(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop("SIGKILL");
  }

  /** Replaces the catalog as a whole. */
  async rewrite(services: readonly DiscoveredService[]): Promise<void> {
    const fresh = `${this.file}.new`;
    await Deno.writeTextFile(fresh, documentOf(services));
    await Deno.rename(fresh, this.file);
  }

  /** What clients rejected since this process began, or before for gcp. */
  async rejects(): Promise<readonly Reject[]> {
    if (this.isOurs) return await this.#rejectsOfOurs();
    const log = await Deno.readTextFile(this.#logFile);
    return log.split("\n").filter((line) => line.startsWith("{"))
      .map((line): JournalEntry => JSON.parse(line))
      .filter(({ error }) => error !== undefined)
      .map(({ node = "", type = "", error: message = "" }) => ({
        ...{ node, type, message },
      }));
  }

  async #reference(): Promise<string[]> {
    return [
      await findPeer("xds-gcp"),
      `-cache=${this.maker === "gcp-linear" ? "linear" : "snapshot"}`,
      `-listen=127.0.0.1:${this.port}`,
      `-catalog=${this.file}`,
      ...(this.#config.isQuiet ? ["-quiet"] : []),
    ];
  }

  #ourCommand(): string[] {
    const { ca, server } = this.#workspace.certificates;
    return [
      ...ourCommand("server", "--v=0"),
      ...["--discovery", `--discovery-config=${this.file}`],
      `--discovery-listen=127.0.0.1:${this.port}`,
      ...["--mode=auto", `--uds-name=${this.#socket}`, "--server-port=0"],
      ...["--agent-bind-address=127.0.0.1", `--agent-port=${this.agentPort}`],
      ...["--health-bind-address=127.0.0.1"],
      `--health-port=${this.#healthPort}`,
      ...[`--admin-port=${this.adminPort}`, `--admin-socket=${this.#admin}`],
      ...[`--cluster-cert=${server.cert}`, `--cluster-key=${server.key}`],
      `--cluster-ca-cert=${ca}`,
      ...this.#config.flags ?? [],
    ];
  }

  /** Ours alone: its clients, and how far they are. */
  async clients(): Promise<readonly ClientSummary[]> {
    const client = new AdminClient("server", {
      kind: "unix",
      path: this.#admin,
    });
    const answer = await client.get<
      { readonly clients: readonly ClientSummary[] }
    >(discoveryPath("sync"));
    return answer.clients;
  }

  async #rejectsOfOurs(): Promise<readonly Reject[]> {
    const rejects = (await this.clients()).flatMap(({ client, kinds }) =>
      kinds.filter(({ nacks }) => nacks > 0).map(({ type, nacked }) => ({
        node: client,
        type,
        // It may have taken something else since.
        message: nacked?.message ?? "",
      }))
    );
    const total = await this.#metric("rejects_total");
    if (rejects.length > 0 || total === 0) return rejects;
    const message = `${total} by clients that are gone`;
    return [{ node: "?", type: "?", message }];
  }

  /** The sum of a counter of discovery over its labels. */
  async #metric(name: string): Promise<number> {
    const url = `http://127.0.0.1:${this.adminPort}/metrics`;
    const text = await (await fetch(url)).text();
    const lines = text.matchAll(
      new RegExp(`^\\w*discovery_${name}(?:\\{.*\\})? (\\d+)$`, "gm"),
    );
    const values = [...lines].map(([, value]) => Number(value));
    if (values.length === 0) throw new Error(`no metric ${name}:\n${text}`);
    return values.reduce((sum, value) => sum + value, 0);
  }
}

/** A line of the reference's output, as far as it tells of a reject. */
interface JournalEntry {
  readonly node?: string;
  readonly type?: string;
  readonly error?: string;
}

/** As in docs/services.md. */
export function documentOf(services: readonly DiscoveredService[]): string {
  return JSON.stringify({
    services: services.map((service) => {
      const { protocol = "tcp", appProtocol, listen, routes, ...rest } =
        service;
      const { endpoints, via, each, ...itself } = rest;
      const at = listen === undefined ? undefined : `127.0.0.1:${listen}`;
      return {
        ...itself,
        ports: [{ port: 80, protocol, appProtocol, listen: at, routes }],
        endpoints: endpoints.map((text, index) => {
          const colon = text.lastIndexOf(":");
          return {
            address: text.slice(0, colon),
            port: Number(text.slice(colon + 1)),
            ...{ via, ...each?.[index] },
          };
        }),
      };
    }),
  });
}
