/**
 * A server with an identity of its own, as a process that can be killed and
 * started again at the same place.
 *
 * @module
 */

import { Child } from "../program/child.ts";
import { freePort } from "../program/ports.ts";
import { mustRun } from "../program/run.ts";
import { ourCommand } from "../program/tunnel.ts";
import type { Workspace } from "../program/workspace.ts";

/** See the module description. */
export class IdentityStage {
  readonly stateDirectory: string;
  readonly agentPort = freePort();
  readonly healthPort = freePort();
  server: Child | undefined;
  /** Words before the program, such as those that set a limit. */
  prefix: readonly string[] = [];

  /** @param other A server whose state directory this one shares. */
  constructor(private readonly workspace: Workspace, other?: IdentityStage) {
    this.stateDirectory = other?.stateDirectory ?? workspace.path("server");
  }

  get socketPath(): string {
    return `${this.stateDirectory}/frontend.sock`;
  }

  /** Starts the server, and waits until it listens. */
  async start(...flags: readonly string[]): Promise<Child> {
    this.server = new Child({
      name: "server",
      command: [
        ...this.prefix,
        ...ourCommand("server"),
        `--state-dir=${this.stateDirectory}`,
        `--agent-port=${this.agentPort}`,
        "--agent-bind-address=127.0.0.1",
        `--health-port=${this.healthPort}`,
        "--health-bind-address=127.0.0.1",
        "--admin-port=0",
        ...flags,
      ],
      logFile: this.workspace.path("server.log"),
    });
    await this.server.untilPrinted(/server started/);
    return this.server;
  }

  /** The command line that `tunnel token create` prints for a node. */
  async createToken(...flags: readonly string[]): Promise<string> {
    const printed = await mustRun(
      ...["token", "create", "--json", `--state-dir=${this.stateDirectory}`],
      ...[`--server=127.0.0.1:${this.agentPort}`, ...flags],
    );
    return JSON.parse(printed).token;
  }
}
