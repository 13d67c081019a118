/**
 * What faults are made beside: a server with an identity of its own, and nodes
 * that have joined it.
 *
 * @module
 */

import { listenPolledTcp } from "../../net/bind/polled_listener.ts";
import { Child } from "../support/program/child.ts";
import { freePort } from "../support/program/ports.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { Workspace } from "../support/program/workspace.ts";
import { IdentityServer } from "../support/rigs/node_stage.ts";

/** What does not accept within so long on this machine does not. */
const DEAF_MS = 300;

/** See the module description. */
export class DoctorStage implements AsyncDisposable {
  readonly #agents = new Map<string, Child>();
  readonly #others: Disposable[] = [];
  /** Words before the program of agents that start from now on. */
  prefix: readonly string[] = [];
  /** A port where nobody listens. */
  readonly closedPort = freePort();

  private constructor(
    readonly workspace: Workspace,
    readonly identity: IdentityServer,
    readonly token: string,
  ) {}

  static async start(...flags: readonly string[]): Promise<DoctorStage> {
    const workspace = await Workspace.make();
    const identity = new IdentityServer(workspace);
    await identity.start(...flags);
    const token = await identity.createToken("--uses=100");
    return new DoctorStage(workspace, identity, token);
  }

  /** Where agents come in. */
  get server(): string {
    return `127.0.0.1:${this.identity.agentPort}`;
  }

  /** Flags by which a command asks the server. */
  get asked(): readonly string[] {
    return [`--state-dir=${this.identity.stateDirectory}`];
  }

  /** Nothing is there. */
  path(name: string): string {
    return this.workspace.path(name);
  }

  nodeDirectory(node: string): string {
    return `${this.workspace.folder}/${node}`;
  }

  /** Joins, links, and goes on. */
  async agent(node: string, ...flags: readonly string[]): Promise<Child> {
    const agent = new Child({
      name: node,
      command: [
        ...this.prefix,
        ...ourCommand("agent"),
        `--server=${this.server}`,
        ...flags.some((flag) => flag.startsWith("--state-dir")) ? [] : [
          `--join=${this.token}`,
          `--node=${node}`,
          `--state-dir=${this.nodeDirectory(node)}`,
        ],
        ...flags,
        "--health-server-port=0",
        "--admin-server-port=0",
      ],
      logFile: this.path(`${node}.log`),
    });
    this.#agents.set(node, agent);
    await agent.untilPrinted(/linked to server/);
    return agent;
  }

  /** A node that has joined, and whose agent does not run. */
  async joined(node: string): Promise<string> {
    const agent = await this.agent(node);
    await agent.stop("SIGKILL");
    return this.nodeDirectory(node);
  }

  /** A node that waits for approval. */
  async waiting(node: string): Promise<void> {
    const token = await this.identity.createToken("--needs-approval");
    const agent = new Child({
      name: node,
      command: [
        ...ourCommand("agent"),
        `--server=${this.server}`,
        `--join=${token}`,
        `--node=${node}`,
        `--state-dir=${this.nodeDirectory(node)}`,
        "--health-server-port=0",
        "--admin-server-port=0",
      ],
      logFile: this.path(`${node}.log`),
    });
    this.ends(agent);
    await agent.untilPrinted(/waits for approval/);
  }

  /** What a joined node has, in another directory. */
  copy(node: string): string {
    const path = this.path(`copy-of-${node}`);
    Deno.mkdirSync(path, { mode: 0o700 });
    for (const { name, isFile } of Deno.readDirSync(this.nodeDirectory(node))) {
      if (!isFile) continue;
      Deno.copyFileSync(
        `${this.nodeDirectory(node)}/${name}`,
        `${path}/${name}`,
      );
    }
    return path;
  }

  /** Another command of ours, on the server's state. */
  async run(...words: readonly string[]): Promise<void> {
    const [program, ...args] = ourCommand(...words);
    const { success, stderr } = await new Deno.Command(program!, {
      args: [...args, `--state-dir=${this.identity.stateDirectory}`],
    }).output();
    if (!success) throw new Error(new TextDecoder().decode(stderr));
  }

  /** A program that ends with the stage. */
  ends(child: Child): void {
    this.#agents.set(child.logFile, child);
  }

  /** A TCP service that is none of ours. @param answer To each connection. */
  service(answer: (conn: Deno.TcpConn) => Promise<void>): number {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const serving = (async () => {
      for await (const conn of listener) {
        answer(conn).catch(() => {}).finally(() => {
          try {
            conn.close();
          } catch {
            // The other end was first.
          }
        });
      }
    })();
    serving.catch(() => {});
    this.#others.push({ [Symbol.dispose]: () => listener.close() });
    return listener.addr.port;
  }

  /** A port that is served at one address of this machine. */
  onlyOn(hostname: string): number {
    const listener = Deno.listen({ hostname, port: 0 });
    this.#others.push({ [Symbol.dispose]: () => listener.close() });
    return listener.addr.port;
  }

  /** A unix socket whose connections come to the server's port for agents. */
  door(): string {
    return this.#unixService("door.sock", async (near) => {
      const [hostname, port] = this.server.split(":");
      const far = await Deno.connect({
        hostname: hostname!,
        port: Number(port),
      });
      await Promise.all([
        near.readable.pipeTo(far.writable),
        far.readable.pipeTo(near.writable),
      ]);
    });
  }

  /** The same of something that hangs up as soon as it is spoken to. */
  cuttingDoor(): string {
    return this.#unixService("cut.sock", async (near) => {
      await near.read(new Uint8Array(16));
      near.close();
    });
  }

  #unixService(
    name: string,
    answer: (conn: Deno.UnixConn) => Promise<void>,
  ): string {
    const path = this.path(name);
    const listener = Deno.listen({ transport: "unix", path });
    const serving = (async () => {
      // Either end may go when it likes.
      for await (const conn of listener) answer(conn).catch(() => {});
    })();
    serving.catch(() => {});
    this.#others.push({ [Symbol.dispose]: () => listener.close() });
    return path;
  }

  /** What ends TLS, and makes TLS of its own to a server. */
  balancer(
    own: { readonly cert: string; readonly key: string },
    ca: string,
    server: string,
  ): number {
    const [hostname, port] = server.split(":");
    return this.#tls(own, ["h2"], async (conn) => {
      const there = await Deno.connectTls({
        hostname: hostname!,
        port: Number(port),
        caCerts: [Deno.readTextFileSync(ca)],
        alpnProtocols: ["h2"],
      });
      await Promise.all([
        conn.readable.pipeTo(there.writable),
        there.readable.pipeTo(conn.writable),
      ]);
    });
  }

  /** What speaks HTTP over TLS, and no HTTP/2. */
  website(own: { readonly cert: string; readonly key: string }): number {
    return this.#tls(own, ["http/1.1"], async (conn) => {
      await conn.read(new Uint8Array(512));
    });
  }

  #tls(
    { cert, key }: { readonly cert: string; readonly key: string },
    alpnProtocols: string[],
    answer: (conn: Deno.TlsConn) => Promise<void>,
  ): number {
    const listener = Deno.listenTls({
      hostname: "127.0.0.1",
      port: 0,
      cert: Deno.readTextFileSync(cert),
      key: Deno.readTextFileSync(key),
      alpnProtocols,
    });
    const serving = (async () => {
      for await (const conn of listener) answer(conn).catch(() => {});
    })();
    serving.catch(() => {});
    this.#others.push({ [Symbol.dispose]: () => listener.close() });
    return listener.addr.port;
  }

  /** A port whose queue is full: further SYNs are dropped, as by a firewall. */
  async deafPort(): Promise<number> {
    const listener = listenPolledTcp({ hostname: "127.0.0.1", port: 0 }, 1)!;
    const { port } = listener.address;
    const waiting: Deno.TcpConn[] = [];
    this.#others.push({
      [Symbol.dispose]() {
        listener.close();
        for (const conn of waiting) conn.close();
      },
    });
    for (;;) {
      const signal = AbortSignal.timeout(DEAF_MS);
      try {
        waiting.push(
          await Deno.connect({ hostname: "127.0.0.1", port, signal }),
        );
      } catch {
        return port;
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const other of this.#others) other[Symbol.dispose]();
    const agents = [...this.#agents.values()];
    for (const agent of agents) agent.signal("SIGCONT");
    await Promise.all(agents.map((agent) => agent.stop("SIGKILL")));
    this.identity.child.signal("SIGCONT");
    await this.identity.child.stop("SIGKILL");
    await this.workspace.remove();
  }
}
