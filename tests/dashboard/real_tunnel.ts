/**
 * A real server with real agents that joined it, as its user starts them: whole
 * processes, a state directory, a service file, and traffic.
 *
 * @module
 */

import type { NodesAnswer } from "../../proto/admin/node_answer.ts";
import { Child } from "../support/program/child.ts";
import { freePort } from "../support/program/ports.ts";
import { ourCommand } from "../support/program/tunnel.ts";

/** How long the parts may take to find each other, on a busy machine. */
const READY_MS = 30_000;

export class RealTunnel implements AsyncDisposable {
  readonly folder: string = Deno.makeTempDirSync({ prefix: "tunnel-dash-" });
  readonly adminPort = freePort();
  readonly #agentPort = freePort();
  readonly #healthPort = freePort();
  readonly #children = new Set<Child>();
  readonly #target: Deno.Listener;
  #server: Child | undefined;

  private constructor() {
    this.#target = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    echoAll(this.#target).catch(() => {});
  }

  /** A server and its agents, linked. */
  static async start(...nodes: readonly string[]): Promise<RealTunnel> {
    const tunnel = new RealTunnel();
    try {
      await tunnel.#begin(nodes);
      return tunnel;
    } catch (error) {
      await tunnel[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #begin(nodes: readonly string[]): Promise<void> {
    await this.startServer();
    for (const node of nodes) await this.#join(node);
    await this.until(async () => {
      const { nodes: online } = JSON.parse(
        await this.run("node", "list", "--only=online", "--output=json"),
      ) as NodesAnswer;
      return online.length >= nodes.length;
    });
  }

  get serverPid(): number {
    return this.#server!.pid;
  }

  /** Where what is dialed through the tunnel answers. */
  get targetPort(): number {
    return (this.#target.addr as Deno.NetAddr).port;
  }

  async startServer(): Promise<void> {
    this.#server = this.#start("server", [
      "server",
      `--state-dir=${this.#state}`,
      ...["--agent-bind-address=127.0.0.1", "--server-id=real-1"],
      `--agent-port=${this.#agentPort}`,
      "--server-port=0",
      "--health-bind-address=127.0.0.1",
      `--health-port=${this.#healthPort}`,
      `--admin-port=${this.adminPort}`,
      `--uds-name=${this.folder}/f.sock`,
    ]);
    await this.until(async () => {
      const url = `http://127.0.0.1:${this.#healthPort}/healthz`;
      const response = await fetch(url);
      await response.body?.cancel();
      return response.ok;
    });
  }

  /** Ends the server as a service manager does. */
  async stopServer(): Promise<void> {
    const server = this.#server!;
    await server.stop();
    this.#children.delete(server);
  }

  /** A command of ours that asks this server. @returns What it prints. */
  async run(...words: readonly string[]): Promise<string> {
    const [program, ...args] = ourCommand(
      ...words,
      `--state-dir=${this.#state}`,
    );
    const { stdout, stderr, success } = await new Deno.Command(program!, {
      args,
      env: { NO_COLOR: "1" },
    }).output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes).trim();
    if (success) return text(stdout);
    throw new Error(`Cannot run ${words.join(" ")}: ${text(stderr)}`);
  }

  /** A link as a user gets it. */
  link(...flags: readonly string[]): Promise<string> {
    return this.run("dashboard", ...flags);
  }

  /** A connection through the tunnel that stays, with something moving on it. */
  dialThrough(node: string): Child {
    const [program, ...args] = ourCommand(
      "dial",
      `--server=unix:${this.folder}/f.sock`,
      `--node=${node}`,
      `127.0.0.1:${this.targetPort}`,
    );
    return this.#start(`dial-${node}`, [], [
      ...["sh", "-c", '(while echo ping; do sleep 0.2; done) | "$@"', "sh"],
      ...[program!, ...args],
    ]);
  }

  /** @throws When it does not become so. */
  async until(isSo: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + READY_MS;
    let problem: unknown;
    while (performance.now() < deadline) {
      try {
        if (await isSo()) return;
      } catch (error) {
        problem = error;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`It did not become so: ${problem ?? "no error"}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#children].map((child) => child.stop()));
    this.#target.close();
    await Deno.remove(this.folder, { recursive: true });
  }

  get #state(): string {
    return `${this.folder}/state`;
  }

  async #join(node: string): Promise<void> {
    const printed = await this.run("token", "create");
    const [token] = /tnl1\.\S+/.exec(printed)!;
    this.#start(`agent-${node}`, [
      "agent",
      `--server=127.0.0.1:${this.#agentPort}`,
      `--join=${token}`,
      `--node=${node}`,
      `--state-dir=${this.folder}/${node}`,
      "--health-server-host=127.0.0.1",
      `--health-server-port=${freePort()}`,
      `--admin-server-port=${freePort()}`,
      "--allow-preset=all",
    ]);
  }

  #start(
    name: string,
    words: readonly string[],
    command: readonly string[] = ourCommand(...words),
  ): Child {
    const child = new Child({
      name,
      command,
      logFile: `${this.folder}/${name}.log`,
    });
    this.#children.add(child);
    return child;
  }
}

async function echoAll(listener: Deno.Listener): Promise<void> {
  for await (const conn of listener) {
    conn.readable.pipeTo(conn.writable).catch(() => {});
  }
}
