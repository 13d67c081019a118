/**
 * `tunnel proxy`, what it says about itself and the commands that ask it; on
 * whatever sources its flags name, or on a file that may be rewritten at any time.
 *
 * @module
 */

import type {
  PortStatus,
  ProxyStatus,
} from "../../services/proxy/status/proxy_status.ts";
import type { SourceStatus } from "../../services/catalog/source_input.ts";
import {
  type DiscoveredService,
  documentOf,
} from "../../tests/support/peers/discovery_server.ts";
import { Child } from "../../tests/support/program/child.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import { eventually } from "../../tests/support/watch/patience.ts";
import { mustEnd } from "../../tests/support/program/run.ts";

/** Programs of others take longer than ours. */
const TIMEOUT_MS = 30_000;
const SERVED_TIMEOUT_MS = 120_000;

/** See the module description. */
export class ProxyRun implements AsyncDisposable {
  protected constructor(readonly child: Child, readonly adminPort: number) {}

  /** Starts one; nobody waits for its sources. */
  static async start(
    workspace: Workspace,
    ...flags: readonly string[]
  ): Promise<ProxyRun> {
    const proxy = new ProxyRun(...launched(workspace, ["--v=1", ...flags]));
    await proxy.child.untilReady(`${proxy.#adminUrl}/healthz`);
    return proxy;
  }

  get #adminUrl(): string {
    return `http://127.0.0.1:${this.adminPort}`;
  }

  /** Until each source has been read, and `count` ports are open. */
  async serves(count: number): Promise<void> {
    await this.child.untilReady(`${this.#adminUrl}/readyz`);
    await eventually(
      `${count} ports are open`,
      async () =>
        (await this.status()).services
          .filter(({ listening }) => listening !== undefined).length === count,
      SERVED_TIMEOUT_MS,
    );
  }

  /** `/debug/proxy`. */
  async status(): Promise<ProxyStatus> {
    return await (await this.#get("/debug/proxy")).json();
  }

  async metrics(): Promise<string> {
    return await (await this.#get("/metrics")).text();
  }

  /** Of one service's first port. */
  async port(service: string): Promise<PortStatus | undefined> {
    return (await this.status()).services.find((port) =>
      port.service === service
    );
  }

  async source(name: string): Promise<SourceStatus> {
    const { sources } = await this.status();
    return sources.find((source) => source.name === name)!;
  }

  /** Waits until these endpoints, `host:port` each, get new connections. */
  async uses(service: string, ...endpoints: readonly string[]): Promise<void> {
    const expected = endpoints.toSorted().join();
    await eventually(`${service} uses ${expected || "none"}`, async () => {
      const port = await this.port(service);
      if (port === undefined) return false;
      return port.endpoints.filter(({ use }) => use === "in use")
        .map(({ address }) => address).sort().join() === expected;
    }, TIMEOUT_MS);
  }

  /** Where a service is served. */
  async place(service: string): Promise<Deno.ConnectOptions> {
    await eventually(
      `${service} is served`,
      async () => (await this.port(service))?.listening !== undefined,
      TIMEOUT_MS,
    );
    const { listening } = (await this.port(service))!;
    const [hostname = "", port] = listening!.split(":");
    return { hostname, port: Number(port) };
  }

  /** What `tunnel services …` or `tunnel endpoints …` prints about it. */
  async says(...words: readonly string[]): Promise<string> {
    return await mustEnd(
      ourCommand(...words, `--proxy=127.0.0.1:${this.adminPort}`),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.child.stop();
  }

  async #get(path: string): Promise<Response> {
    return await fetch(`${this.#adminUrl}${path}`);
  }
}

function launched(
  workspace: Workspace,
  flags: readonly string[],
): [Child, number] {
  const adminPort = freePort();
  const child = new Child({
    name: "tunnel proxy",
    command: [
      ...ourCommand("proxy", `--admin-port=${adminPort}`, ...flags),
      "--drain-timeout=0s",
    ],
    logFile: workspace.path("proxy.log"),
  });
  return [child, adminPort];
}

/** One on a file of services. */
export class FileProxy extends ProxyRun {
  private constructor(parts: [Child, number], private readonly file: string) {
    super(...parts);
  }

  /** Starts one, and waits until it serves everything. */
  static async serving(
    workspace: Workspace,
    services: readonly DiscoveredService[],
  ): Promise<FileProxy> {
    const proxy = await FileProxy.launch(workspace, documentOf(services));
    try {
      await proxy.serves(services.length);
    } catch (error) {
      await proxy.child.stop();
      throw error;
    }
    return proxy;
  }

  /** Starts one on this text and waits for nothing. */
  static async launch(
    workspace: Workspace,
    text: string,
    flags: readonly string[] = [],
  ): Promise<FileProxy> {
    // A folder of its own: the proxy watches the one that its file is in.
    const folder = workspace.path("services");
    await Deno.mkdir(folder);
    const file = `${folder}/services.json`;
    await Deno.writeTextFile(file, text);
    const all = [`--config=${file}`, "--v=0", ...flags];
    return new FileProxy(launched(workspace, all), file);
  }

  async rewrite(services: readonly DiscoveredService[]): Promise<void> {
    await this.rewriteAs(documentOf(services));
  }

  /** Replaces the file as a whole. */
  async rewriteAs(text: string): Promise<void> {
    const fresh = `${this.file}.new`;
    await Deno.writeTextFile(fresh, text);
    await Deno.rename(fresh, this.file);
  }
}
