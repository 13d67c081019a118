/**
 * Servers of one identity, nodes that join them, and whatever else of ours runs
 * beside them: real processes, which end with the stage.
 *
 * @module
 */

import type { Child } from "../program/child.ts";
import { freePort } from "../program/ports.ts";
import { type Ended, mustRun, runTunnel } from "../program/run.ts";
import { Workspace } from "../program/workspace.ts";
import {
  NO_PORTS,
  Processes,
  type ServerConfig,
  ServerProcess,
} from "./processes.ts";

/** Where a proxy serves the service `web`, in its own words. */
const SERVED = /default\/web is served on [^ ]*:(\d+)/;

/** A server with an identity, its own or one that it shares with others. */
export class IdentityServer extends ServerProcess {
  readonly stateDirectory: string;

  /**
   * @param other A server whose state directory this one shares.
   * @param config How it differs from the usual.
   */
  constructor(
    workspace: Workspace,
    other?: IdentityServer,
    { flags = [], ...config }: ServerConfig = {},
  ) {
    const stateDirectory = other?.stateDirectory ?? workspace.path("server");
    super(workspace, {
      socket: `${stateDirectory}/frontend.sock`,
      ...config,
      flags: [`--state-dir=${stateDirectory}`, "--admin-port=0", ...flags],
    });
    this.stateDirectory = stateDirectory;
  }

  /** A token of `tunnel token create`. */
  async createToken(...flags: readonly string[]): Promise<string> {
    const printed = await mustRun(
      ...["token", "create", "--json", `--state-dir=${this.stateDirectory}`],
      ...[`--server=${this.address}`, ...flags],
    );
    return JSON.parse(printed).token;
  }
}

/** A proxy that serves `web`, and where. */
export interface StagedProxy {
  readonly child: Child;
  readonly port: number;
  readonly adminPort: number;
}

/** See the module description. */
export class NodeStage extends Processes {
  /** The first one. */
  readonly server: IdentityServer;
  readonly #folders = new Map<string, string>();

  /** @param config Of the first server. */
  constructor(workspace: Workspace, config?: ServerConfig) {
    super(workspace);
    this.server = new IdentityServer(workspace, undefined, config);
    this.servers.push(this.server);
  }

  /** With one server that runs. */
  static async open(...flags: readonly string[]): Promise<NodeStage> {
    const stage = new NodeStage(await Workspace.make());
    await stage.server.start(...flags);
    return stage;
  }

  /** `HOST:PORT` of each server, for `--server` and `--discovery`. */
  get addresses(): string {
    return this.servers.map(({ address }) => address).join();
  }

  /** Another one that shares the state of the first; it is not started. */
  addSibling(config?: ServerConfig): IdentityServer {
    const server = new IdentityServer(this.workspace, this.server, config);
    this.servers.push(server);
    return server;
  }

  /** Where a node keeps its identity. */
  folderOf(node: string): string {
    const folder = this.#folders.get(node) ?? this.workspace.path(node);
    this.#folders.set(node, folder);
    return folder;
  }

  /** Runs a command on the server's state. */
  ask(...words: readonly string[]): Promise<Ended> {
    return runTunnel([...words, `--state-dir=${this.server.stateDirectory}`]);
  }

  /** `tunnel join`. @returns Where the node keeps its identity. */
  async join(node: string, at = this.addresses): Promise<string> {
    const folder = this.folderOf(node);
    await mustRun(
      ...["join", await this.server.createToken(`--node=${node}`)],
      ...[`--node=${node}`, `--server=${at}`],
      `--state-dir=${folder}`,
    );
    return folder;
  }

  /** An agent of a node that has joined, or joins by its flags. */
  agent(node: string, ...flags: readonly string[]): Child {
    const own = flags.some((flag) => flag.startsWith("--server="))
      ? []
      : [`--server=${this.addresses}`];
    return this.run(
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
    const child = this.run(
      `proxy of ${node}`,
      ...["proxy", `--discovery=${this.addresses}`, "--discovery-state=none"],
      ...[`--state-dir=${this.folderOf(node)}`, `--admin-port=${adminPort}`],
      ...flags,
    );
    const port = Number((await child.untilPrinted(SERVED))[1]);
    return { child, port, adminPort };
  }
}
