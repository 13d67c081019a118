/**
 * What mistakes are made beside: a server with an identity of its own, nodes
 * that have joined it and are in every state, tokens, certificates, files.
 *
 * @module
 */

import { Child } from "../support/program/child.ts";
import { freePort } from "../support/program/ports.ts";
import { mustRun } from "../support/program/run.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { Workspace } from "../support/program/workspace.ts";
import { IdentityServer } from "../support/rigs/node_stage.ts";

/** See the module description. */
export class MistakeStage implements AsyncDisposable {
  readonly #agents = new Map<string, Child>();

  private constructor(
    readonly workspace: Workspace,
    readonly identity: IdentityServer,
    /** For any name, good a hundred times. */
    readonly token: string,
    /** For `edge-*` only. */
    readonly narrowToken: string,
    /** For one node, and used. */
    readonly usedToken: string,
    /** Who joins with it has to be approved. */
    readonly slowToken: string,
    /** A server that has its certificates from somebody else's CA. */
    readonly foreign: IdentityServer,
    /** Where its callers show certificates. */
    readonly tlsPort: number,
    /** A port where nobody listens. */
    readonly closedPort: number,
    /** A port where somebody else listens, who says nothing. */
    readonly takenPort: number,
    private readonly taken: Deno.Listener,
  ) {}

  static async start(): Promise<MistakeStage> {
    const workspace = await Workspace.make();
    const identity = new IdentityServer(workspace);
    const foreign = new IdentityServer(workspace);
    const tlsPort = freePort();
    const { ca, server } = workspace.certificates;
    const pair = (side: string) => [
      `--${side}-cert=${server.cert}`,
      `--${side}-key=${server.key}`,
      `--${side}-ca-cert=${ca}`,
    ];
    await Promise.all([
      identity.start(),
      foreign.start(
        `--server-port=${tlsPort}`,
        ...pair("server"),
        ...pair("cluster"),
      ),
    ]);
    const token = await identity.createToken("--uses=100");
    const narrow = await identity.createToken("--node=edge-*", "--uses=100");
    const used = await identity.createToken("--uses=1");
    const slow = await identity.createToken("--needs-approval", "--uses=9");
    const taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const stage = new MistakeStage(
      workspace,
      identity,
      token,
      narrow,
      used,
      slow,
      foreign,
      tlsPort,
      freePort(),
      (taken.addr as Deno.NetAddr).port,
      taken,
    );
    await Promise.all([
      stage.#join("node1"),
      stage.#join("node2"),
      stage.#join("strict", "--deny=*:*:9"),
      stage.#join("exile"),
      stage.#join("former"),
      stage.#join("gone", `--join=${used}`),
      stage.#join("still"),
    ]);
    await stage.#trouble();
    return stage;
  }

  /** Brings nodes into the states that they are called after. */
  async #trouble(): Promise<void> {
    for (const name of ["exile", "former", "gone"]) {
      await this.#agents.get(name)!.stop("SIGKILL");
    }
    this.#agents.get("still")!.signal("SIGSTOP");
    const state = `--state-dir=${this.identity.stateDirectory}`;
    await mustRun("node", "revoke", "exile", "--reason=stolen", state);
    await mustRun("node", "forget", "former", state);
  }

  /** Where the server's agents come in. */
  get server(): string {
    return `127.0.0.1:${this.identity.agentPort}`;
  }

  /** Where callers come in. */
  get frontend(): string {
    return `unix:${this.identity.socket}`;
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

  /** What `node` has, where no agent runs. */
  copyOfNode(
    name: string,
    change: (path: string) => void = () => {},
    node = "node1",
  ): string {
    const path = this.directory(name);
    const from = this.nodeDirectory(node);
    for (const { name, isFile } of Deno.readDirSync(from)) {
      if (isFile) Deno.copyFileSync(`${from}/${name}`, `${path}/${name}`);
    }
    change(path);
    return path;
  }

  async #join(node: string, ...flags: readonly string[]): Promise<void> {
    const agent = new Child({
      name: node,
      command: [
        ...ourCommand("agent"),
        `--server=${this.server}`,
        ...(flags.some((flag) => flag.startsWith("--join="))
          ? []
          : [`--join=${this.token}`]),
        ...flags,
        `--node=${node}`,
        `--state-dir=${this.nodeDirectory(node)}`,
        "--health-server-port=0",
        "--admin-server-port=0",
      ],
      logFile: this.path(`${node}.log`),
    });
    this.#agents.set(node, agent);
    await agent.untilPrinted(/linked to server/);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.taken.close();
    const agents = [...this.#agents.values()];
    await Promise.all(agents.map((agent) => agent.stop("SIGKILL")));
    await this.identity.child.stop("SIGKILL");
    await this.foreign.child.stop("SIGKILL");
    await this.workspace.remove();
  }
}
