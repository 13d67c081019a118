/**
 * `tunnel proxy` on a file of services that may be rewritten at any time.
 *
 * @module
 */

import { Child } from "../../tests/support/program/child.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { patience } from "../../tests/support/watch/patience.ts";

const READY_TIMEOUT_MS = 120_000;
const POLL_MS = 20;

/** A service with one port. */
export interface ServiceConfig {
  readonly name: string;
  readonly protocol?: "tcp" | "udp";
  /** Where it is served, on 127.0.0.1. */
  readonly listen: number;
  /** `ip:port` each. */
  readonly endpoints: readonly string[];
  /** As in the file. */
  readonly policy?: Readonly<Record<string, unknown>>;
}

/** As much of `/debug/proxy` as is asked for here. */
export interface SeenPort {
  readonly service: string;
  readonly listening?: string;
  /** Connections or sessions. */
  readonly open: number;
  readonly refused: number;
  readonly endpoints: readonly { readonly address: string }[];
}

/** See the module description. */
export class ServiceProxyProcess {
  private constructor(
    readonly child: Child,
    readonly file: string,
    readonly adminUrl: string,
  ) {}

  /** Starts one, and waits until it serves everything. */
  static async start(
    workspace: Workspace,
    services: readonly ServiceConfig[],
    flags: readonly string[] = [],
  ): Promise<ServiceProxyProcess> {
    const proxy = await ServiceProxyProcess.launch(workspace, services, flags);
    try {
      await proxy.untilServed(services.length);
    } catch (error) {
      await proxy.stop();
      throw error;
    }
    return proxy;
  }

  /** Starts one and waits for nothing. */
  static async launch(
    workspace: Workspace,
    services: readonly ServiceConfig[],
    flags: readonly string[] = [],
  ): Promise<ServiceProxyProcess> {
    // A folder of its own: the proxy watches the one that its file is in.
    const folder = workspace.path("services");
    await Deno.mkdir(folder);
    const file = `${folder}/services.json`;
    await Deno.writeTextFile(file, documentOf(services));
    const adminPort = freePort();
    const child = new Child({
      name: "tunnel proxy",
      command: [
        ...ourCommand("proxy", `--config=${file}`, "--v=0"),
        ...[`--admin-port=${adminPort}`, "--drain-timeout=0s", ...flags],
      ],
      logFile: workspace.path("proxy.log"),
    });
    const adminUrl = `http://127.0.0.1:${adminPort}`;
    return new ServiceProxyProcess(child, file, adminUrl);
  }

  /** Waits until so many ports are open. */
  async untilServed(count: number): Promise<void> {
    await this.child.untilReady(`${this.adminUrl}/readyz`);
    const deadline = Date.now() + patience(READY_TIMEOUT_MS);
    for (;;) {
      const ports = await this.ports();
      const open = ports.filter(({ listening }) => listening !== undefined);
      if (open.length === count) return;
      if (Date.now() > deadline) {
        const tail = await this.child.logTail();
        throw new Error(`${open.length} of ${count} are served:\n${tail}`);
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /** Replaces the file as a whole. */
  async rewrite(services: readonly ServiceConfig[]): Promise<void> {
    const fresh = `${this.file}.new`;
    await Deno.writeTextFile(fresh, documentOf(services));
    await Deno.rename(fresh, this.file);
  }

  /** What it says about its ports. */
  async ports(): Promise<readonly SeenPort[]> {
    const response = await fetch(`${this.adminUrl}/debug/proxy`);
    return (await response.json()).services;
  }

  async stop(): Promise<void> {
    await this.child.stop();
  }
}

/** JSON is read many times as fast as YAML. */
function documentOf(services: readonly ServiceConfig[]): string {
  return JSON.stringify({
    services: services.map(({ name, protocol, listen, endpoints, policy }) => ({
      name,
      ports: [{
        port: listen,
        protocol: protocol ?? "tcp",
        listen: `127.0.0.1:${listen}`,
      }],
      ...(policy === undefined ? {} : { policy }),
      endpoints: endpoints.map((each) => {
        const colon = each.lastIndexOf(":");
        const port = Number(each.slice(colon + 1));
        return { address: each.slice(0, colon), port };
      }),
    })),
  });
}
