/**
 * The tunnel that recordings are made of, of real processes: a server, five
 * nodes of which one is killed and one is far away, and callers that move bytes.
 *
 * @module
 */

import { Child } from "../../tests/support/program/child.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { IdentityStage } from "../../tests/support/rigs/identity_stage.ts";
import { ThrowawayCa } from "../../tests/support/certificates/throwaway_ca.ts";
import { CuttableLine } from "../../tests/support/peers/cuttable_line.ts";

/** The node that is killed, and the one whose line is long. */
export const GONE = "oslo";
export const SLOW = "quito";

const NODES = ["berlin", "lisbon", "porto", GONE, SLOW];

/** Users by their certificates, and the nodes that they go to. */
const CALLERS = [
  ["alice", [SLOW, "berlin"]],
  ["backup", [SLOW, "lisbon"]],
] as const;

/** One way; there and back it is twice as long. */
const DELAY_MS = 110;

/** So long the callers have moved bytes, and the rates have settled. */
const SETTLE_MS = 12_000;

/** See the module description. */
export class RecordedStage implements AsyncDisposable {
  readonly #frontend = freePort();
  readonly #children = new Map<string, Child>();
  readonly #identity: IdentityStage;
  readonly #line: CuttableLine;
  readonly #target: Deno.TcpListener;
  readonly #callers: Deno.Conn[] = [];
  #hasEnded = false;

  private constructor(readonly workspace: Workspace) {
    this.#identity = new IdentityStage(workspace);
    this.#line = new CuttableLine(this.#identity.agentPort);
    this.#target = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    void this.#serve();
  }

  static async start(): Promise<RecordedStage> {
    const stage = new RecordedStage(await Workspace.make());
    try {
      await stage.#programs();
      return stage;
    } catch (error) {
      await stage[Symbol.asyncDispose]();
      throw error;
    }
  }

  get stateDirectory(): string {
    return this.#identity.stateDirectory;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#hasEnded = true;
    for (const conn of this.#callers) conn.close();
    this.#target.close();
    this.#line.close();
    for (const child of this.#children.values()) await child.stop("SIGKILL");
    await this.#identity.server?.stop("SIGKILL");
    await this.workspace.remove();
  }

  async #programs(): Promise<void> {
    const authority = await ThrowawayCa.create("people");
    const files = async (commonName: string) => {
      const names = ["127.0.0.1"];
      const usage = "both" as const;
      const pair = await authority.issue({ commonName, usage, names });
      const path = `${this.workspace.folder}/${commonName}`;
      await Deno.writeTextFile(`${path}.crt`, pair.cert);
      await Deno.writeTextFile(`${path}.key`, pair.key, { mode: 0o600 });
      return path;
    };
    const ca = `${this.workspace.folder}/people.crt`;
    await Deno.writeTextFile(ca, authority.cert);
    const own = await files("frontend");
    await this.#identity.start(
      "--server-id=hub-1",
      `--server-port=${this.#frontend}`,
      `--server-cert=${own}.crt`,
      `--server-key=${own}.key`,
      `--server-ca-cert=${ca}`,
    );
    const token = await this.#identity.createToken("--uses=9", "--ttl=12h");
    for (const node of NODES) {
      const port = node === SLOW ? this.#line.port : this.#identity.agentPort;
      const agent = this.#start(
        node,
        "agent",
        `--server=127.0.0.1:${port}`,
        `--join=${token}`,
        `--node=${node}`,
        `--state-dir=${this.workspace.folder}/${node}`,
        "--health-server-port=0",
        "--admin-server-port=0",
        // It would learn the short way.
        "--learn-servers=false",
      );
      await agent.untilPrinted(/linked to server/);
    }
    this.#line.delayMs = DELAY_MS;
    await this.#children.get(GONE)!.stop("SIGKILL");
    for (const [user, nodes] of CALLERS) {
      await this.#call(user, nodes, [
        `--ca-cert=${ca}`,
        `--cert=${await files(user)}.crt`,
        `--key=${this.workspace.folder}/${user}.key`,
      ]);
    }
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  }

  #start(name: string, ...words: readonly string[]): Child {
    const child = new Child({
      name,
      command: ourCommand(...words),
      logFile: this.workspace.path(`${name}.log`),
    });
    this.#children.set(name, child);
    return child;
  }

  /** A forward for each, and somebody who talks through it. */
  async #call(
    user: string,
    nodes: readonly string[],
    shown: readonly string[],
  ): Promise<void> {
    const { port } = this.#target.addr as Deno.NetAddr;
    const forwards = nodes.map((node) => ({ node, at: freePort() }));
    const child = this.#start(
      user,
      "forward",
      ...forwards.map(({ node, at }) => `${at}:127.0.0.1:${port}@${node}`),
      `--server=127.0.0.1:${this.#frontend}`,
      ...shown,
    );
    await child.untilPrinted(/forwarding|127\.0\.0\.1/);
    for (const { at } of forwards) {
      const conn = await Deno.connect({ hostname: "127.0.0.1", port: at });
      this.#callers.push(conn);
      void this.#talk(conn);
    }
  }

  async #talk(conn: Deno.Conn): Promise<void> {
    const [question, answer] = [new Uint8Array(2_000), new Uint8Array(65_536)];
    try {
      while (!this.#hasEnded) {
        await conn.write(question);
        await conn.read(answer);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    } catch {
      // It is over.
    }
  }

  /** Answers each question with ten times as much. */
  async #serve(): Promise<void> {
    const answer = new Uint8Array(20_000);
    for await (const conn of this.#target) {
      void (async () => {
        try {
          for await (const _ of conn.readable) await conn.write(answer);
        } catch {
          // It is over.
        }
      })();
    }
  }
}
