/**
 * What mistakes are made beside: a server with an identity of its own, two
 * nodes that have joined it, tokens, certificates, files.
 *
 * @module
 */

import { Child } from "../peers/child.ts";
import { freePort } from "../peers/ports.ts";
import { ourCommand } from "../peers/tunnel.ts";
import { Workspace } from "../peers/workspace.ts";
import { IdentityStage } from "../soak/identity_stage.ts";

/** See the module description. */
export class MistakeStage implements AsyncDisposable {
  readonly #agents: Child[] = [];

  private constructor(
    readonly workspace: Workspace,
    readonly identity: IdentityStage,
    /** For any name, good a hundred times. */
    readonly token: string,
    /** For `edge-*` only. */
    readonly narrowToken: string,
    /** A port where nobody listens. */
    readonly closedPort: number,
    /** A port where somebody else listens, who says nothing. */
    readonly takenPort: number,
    private readonly taken: Deno.Listener,
  ) {}

  static async start(): Promise<MistakeStage> {
    const workspace = await Workspace.make();
    const identity = new IdentityStage(workspace);
    await identity.start();
    const token = await identity.createToken("--uses=100");
    const narrow = await identity.createToken("--node=edge-*", "--uses=100");
    const taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const stage = new MistakeStage(
      workspace,
      identity,
      token,
      narrow,
      freePort(),
      (taken.addr as Deno.NetAddr).port,
      taken,
    );
    await Promise.all([stage.#join("node1"), stage.#join("node2")]);
    return stage;
  }

  /** Where the server's agents come in. */
  get server(): string {
    return `127.0.0.1:${this.identity.agentPort}`;
  }

  /** Where callers come in. */
  get frontend(): string {
    return `unix:${this.identity.socketPath}`;
  }

  /** Where a node keeps its identity. */
  nodeDirectory(node: string): string {
    return `${this.workspace.folder}/${node}`;
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

  /** What `node1` has, where no agent runs. */
  copyOfNode(name: string, change: (path: string) => void = () => {}): string {
    const path = this.directory(name);
    const from = this.nodeDirectory("node1");
    for (const { name, isFile } of Deno.readDirSync(from)) {
      if (isFile) Deno.copyFileSync(`${from}/${name}`, `${path}/${name}`);
    }
    change(path);
    return path;
  }

  async #join(node: string): Promise<void> {
    const agent = new Child({
      name: node,
      command: [
        ...ourCommand("agent"),
        `--server=${this.server}`,
        `--join=${this.token}`,
        `--node=${node}`,
        `--state-dir=${this.nodeDirectory(node)}`,
        "--health-server-port=0",
        "--admin-server-port=0",
      ],
      logFile: this.path(`${node}.log`),
    });
    this.#agents.push(agent);
    await agent.untilPrinted(/linked to server/);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.taken.close();
    await Promise.all(this.#agents.map((agent) => agent.stop("SIGKILL")));
    await this.identity.server?.stop("SIGKILL");
    await this.workspace.remove();
  }
}
