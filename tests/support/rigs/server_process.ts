/**
 * A server process that is stopped and started again at the same place.
 *
 * @module
 */

import { Child } from "../program/child.ts";
import { freePort } from "../program/ports.ts";
import { ourCommand } from "../program/tunnel.ts";
import type { Workspace } from "../program/workspace.ts";

/** See the module description. */
export class ServerProcess {
  readonly agentPort = freePort();
  readonly socket: string;
  readonly #flags: string[];
  readonly #healthPort = freePort();
  #child: Child | undefined;
  #starts = 0;

  constructor(
    private readonly workspace: Workspace,
    readonly serverId: string,
    flags: readonly string[] = [],
  ) {
    const { ca, server } = workspace.certificates;
    this.socket = workspace.path("f.sock");
    this.#flags = [
      "--v=2",
      `--server-id=${serverId}`,
      `--agent-port=${this.agentPort}`,
      "--agent-bind-address=127.0.0.1",
      `--health-port=${this.#healthPort}`,
      "--health-bind-address=127.0.0.1",
      `--admin-port=${freePort()}`,
      `--uds-name=${this.socket}`,
      "--server-port=0",
      `--cluster-cert=${server.cert}`,
      `--cluster-key=${server.key}`,
      `--cluster-ca-cert=${ca}`,
      ...flags,
    ];
  }

  /** For `--server`. */
  get address(): string {
    return `127.0.0.1:${this.agentPort}`;
  }

  get child(): Child {
    return this.#child!;
  }

  /** Those that need to know where it listens. */
  addFlags(...flags: readonly string[]): void {
    this.#flags.push(...flags);
  }

  /** Starts it and waits until it listens; agents may not be there. */
  async start(): Promise<void> {
    this.#child = new Child({
      name: `server ${this.serverId}`,
      command: [...ourCommand("server"), ...this.#flags],
      // One each time: what an earlier one has printed says nothing of this one.
      logFile: this.workspace.path(`${this.serverId}-${++this.#starts}.log`),
    });
    await this.#child.untilReady(
      `http://127.0.0.1:${this.#healthPort}/healthz`,
    );
  }

  /** Ends when an agent is linked. @returns After how long. */
  async untilLinked(): Promise<number> {
    const startedMs = performance.now();
    await this.child.untilPrinted(/agent linked/);
    return performance.now() - startedMs;
  }

  async stop(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    await this.#child?.stop(signal);
  }
}
