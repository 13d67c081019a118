/**
 * What mistakes and faults are made beside: a server with an identity of its own,
 * nodes that have joined it, and files of every kind. All of it ends with it.
 *
 * @module
 */

import type { Child } from "../support/program/child.ts";
import { copyFolder } from "../support/program/copy_folder.ts";
import { freePort } from "../support/program/ports.ts";
import { mustRun } from "../support/program/run.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { Workspace } from "../support/program/workspace.ts";
import { IdentityServer } from "../support/rigs/node_stage.ts";
import { Processes } from "../support/rigs/processes.ts";

/** What a site is opened with: its server runs, the token is for any node. */
type Parts = [workspace: Workspace, identity: IdentityServer, token: string];

/** See the module description. */
export class NodeSite extends Processes {
  readonly #others: (() => void)[] = [];
  /** Words before the program of agents that start from now on. */
  prefix: readonly string[] = [];
  /** A port where nobody listens. */
  readonly closedPort = freePort();

  protected constructor(
    workspace: Workspace,
    readonly identity: IdentityServer,
    /** Good a hundred times. */
    readonly token: string,
  ) {
    super(workspace);
    this.servers.push(identity);
  }

  protected static async opened(...flags: readonly string[]): Promise<Parts> {
    const workspace = await Workspace.make();
    const identity = new IdentityServer(workspace);
    await identity.start(...flags);
    const token = await identity.createToken("--uses=100");
    return [workspace, identity, token];
  }

  /** Where the server's agents come in. */
  get server(): string {
    return `127.0.0.1:${this.identity.agentPort}`;
  }

  /** The flag by which a command asks the server, or its state. */
  get asked(): string {
    return `--state-dir=${this.identity.stateDirectory}`;
  }

  /** A path that was not handed out before; nothing is there. */
  path(name: string): string {
    return this.workspace.path(name);
  }

  /** A file that says `text`. */
  file(name: string, text: string, mode = 0o600): string {
    const path = this.path(name);
    Deno.writeTextFileSync(path, text, { mode });
    Deno.chmodSync(path, mode);
    return path;
  }

  /** A directory, with files in it. */
  directory(
    name: string,
    files: Readonly<Record<string, string>> = {},
  ): string {
    const path = this.path(name);
    Deno.mkdirSync(path, { mode: 0o700 });
    for (const [file, text] of Object.entries(files)) {
      Deno.writeTextFileSync(`${path}/${file}`, text, { mode: 0o600 });
    }
    return path;
  }

  /** Where a node keeps its identity. */
  nodeDirectory(node: string): string {
    return `${this.workspace.folder}/${node}`;
  }

  /** What a node has, where no agent runs. */
  copyOfNode(
    name: string,
    change: (path: string) => void = () => {},
    node = "node1",
  ): string {
    const path = this.path(name);
    copyFolder(this.nodeDirectory(node), path);
    change(path);
    return path;
  }

  /** The server's state, where no server runs. */
  copyOfServer(
    name: string,
    change: (path: string) => void = () => {},
  ): string {
    const path = this.path(name);
    copyFolder(this.identity.stateDirectory, path);
    change(path);
    return path;
  }

  /** Another command of ours, on the server's state. */
  async change(...words: readonly string[]): Promise<void> {
    await mustRun(...words, this.asked);
  }

  /** Joins, unless flags say otherwise, links, and goes on. */
  agent(node: string, ...flags: readonly string[]): Promise<Child> {
    return this.agentUntil(/linked to server/, node, flags);
  }

  /** A node that has joined, and whose agent does not run. */
  async joined(node: string, ...flags: readonly string[]): Promise<string> {
    const agent = await this.agent(node, ...flags);
    await agent.stop("SIGKILL");
    return this.nodeDirectory(node);
  }

  /** An agent, until it has said `until`. */
  protected async agentUntil(
    until: RegExp,
    node: string,
    flags: readonly string[],
  ): Promise<Child> {
    const has = (name: string) => flags.some((flag) => flag.startsWith(name));
    const agent = this.launch(node, [
      ...this.prefix,
      ...ourCommand("agent"),
      `--server=${this.server}`,
      ...has("--state-dir") ? [] : [
        ...has("--join") ? [] : [`--join=${this.token}`],
        `--node=${node}`,
        `--state-dir=${this.nodeDirectory(node)}`,
      ],
      ...flags,
      "--health-server-port=0",
      "--admin-server-port=0",
    ]);
    await agent.untilPrinted(until);
    return agent;
  }

  /** What is to be done when the site ends. */
  protected atEnd(act: () => void): void {
    this.#others.push(act);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    for (const act of this.#others) act();
    await super[Symbol.asyncDispose]();
  }
}
