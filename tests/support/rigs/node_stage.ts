/**
 * Servers of one identity, nodes that join them, and whatever else of ours runs
 * beside them: real processes, which end with the stage.
 *
 * @module
 */

import { Child } from "../program/child.ts";
import { freePort } from "../program/ports.ts";
import { type Ended, mustRun, runTunnel } from "../program/run.ts";
import { ourCommand } from "../program/tunnel.ts";
import { Workspace } from "../program/workspace.ts";
import { IdentityStage } from "./identity_stage.ts";

/** Ports of an agent that a test does not ask at. */
const NO_PORTS = [
  "--health-server-host=127.0.0.1",
  "--health-server-port=0",
  "--admin-server-port=0",
];

/** Where a proxy serves the service `web`, in its own words. */
const SERVED = /default\/web is served on [^ ]*:(\d+)/;

/** A proxy that serves `web`, and where. */
export interface StagedProxy {
  readonly child: Child;
  readonly port: number;
  readonly adminPort: number;
}

/** See the module description. */
export class NodeStage implements AsyncDisposable {
  readonly #children: Child[] = [];
  readonly #servers: IdentityStage[] = [];
  readonly #folders = new Map<string, string>();

  constructor(readonly workspace: Workspace) {
    this.addServer();
  }

  /** With one server that runs. */
  static async open(...flags: readonly string[]): Promise<NodeStage> {
    const stage = new NodeStage(await Workspace.make());
    await stage.server.start(...flags);
    return stage;
  }

  /** The first one. */
  get server(): IdentityStage {
    return this.#servers[0]!;
  }

  /** `HOST:PORT` of each server, for `--server` and `--discovery`. */
  get addresses(): string {
    return this.#servers.map(({ agentPort }) => `127.0.0.1:${agentPort}`)
      .join();
  }

  /** Another one that shares the state of the first; it is not started. */
  addServer(): IdentityStage {
    const server = new IdentityStage(this.workspace, this.#servers[0]);
    this.#servers.push(server);
    return server;
  }

  /** Where a node keeps its identity. */
  folderOf(node: string): string {
    const folder = this.#folders.get(node) ?? this.workspace.path(node);
    this.#folders.set(node, folder);
    return folder;
  }

  /** Starts `tunnel` with these words. */
  start(name: string, ...words: readonly string[]): Child {
    const logFile = this.workspace.path(`${name}.log`);
    const child = new Child({ name, command: ourCommand(...words), logFile });
    this.#children.push(child);
    return child;
  }

  /** Runs a command on the server's state. */
  ask(...words: readonly string[]): Promise<Ended> {
    return runTunnel([
      ...words,
      `--state-dir=${this.server.stateDirectory}`,
    ]);
  }

  /** `tunnel join`. @returns Where the node keeps its identity. */
  async join(node: string): Promise<string> {
    const folder = this.folderOf(node);
    await mustRun(
      ...["join", await this.server.createToken(`--node=${node}`)],
      ...[`--node=${node}`, `--server=${this.addresses}`],
      `--state-dir=${folder}`,
    );
    return folder;
  }

  /** An agent of a node that has joined, or joins by its flags. */
  agent(node: string, ...flags: readonly string[]): Child {
    const own = flags.some((flag) => flag.startsWith("--server="))
      ? []
      : [`--server=${this.addresses}`];
    return this.start(
      node,
      ...["agent", ...own, `--node=${node}`, ...NO_PORTS],
      ...[`--state-dir=${this.folderOf(node)}`, ...flags],
    );
  }

  /** An agent of a node that joins now, and is linked. */
  async joined(node: string, ...flags: readonly string[]): Promise<Child> {
    const token = await this.server.createToken(`--node=${node}`);
    const agent = this.agent(node, `--join=${token}`, ...flags);
    await agent.untilPrinted(/linked to server/);
    return agent;
  }

  /** A proxy on a node that has joined, when it serves `web`. */
  async proxy(
    node: string,
    ...flags: readonly string[]
  ): Promise<StagedProxy> {
    const adminPort = freePort();
    const child = this.start(
      `proxy of ${node}`,
      ...["proxy", `--discovery=${this.addresses}`, "--discovery-state=none"],
      ...[`--state-dir=${this.folderOf(node)}`, `--admin-port=${adminPort}`],
      ...flags,
    );
    const port = Number((await child.untilPrinted(SERVED))[1]);
    return { child, port, adminPort };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children.toReversed()) {
      await child.stop("SIGKILL");
    }
    for (const { server } of this.#servers) await server?.stop("SIGKILL");
    await this.workspace.remove();
  }
}
