// deno-lint-ignore-file no-console -- a command that says what it does.
/**
 * Makes `docs/recordings/*.svg`: four questions, each answered by `tunnel status`
 * alone, before a tunnel of real processes. `deno task lab recordings` makes them
 * anew; numbers and times differ from run to run, the shape does not.
 *
 * @module
 */

import { ourCommand } from "../../tests/support/program/tunnel.ts";
import { plain, terminalSvg } from "./terminal_svg.ts";
import type { Child } from "../../tests/support/program/child.ts";
import { freePort } from "../../tests/support/program/ports.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { NodeStage } from "../../tests/support/rigs/node_stage.ts";
import { ThrowawayCa } from "../../tests/support/certificates/throwaway_ca.ts";
import { CuttableLine } from "../../tests/support/peers/cuttable_line.ts";

/** The node that is killed, and the one whose line is long. */
const GONE = "oslo";
const SLOW = "quito";

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

class RecordedStage extends NodeStage {
  readonly #frontend = freePort();
  readonly #line = new CuttableLine(this.server.agentPort);
  readonly #target = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #callers: Deno.Conn[] = [];
  #hasEnded = false;

  static async start(): Promise<RecordedStage> {
    const stage = new RecordedStage(await Workspace.make(), { id: "hub-1" });
    void stage.#serve();
    try {
      await stage.#programs();
      return stage;
    } catch (error) {
      await stage[Symbol.asyncDispose]();
      throw error;
    }
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.#hasEnded = true;
    for (const conn of this.#callers) conn.close();
    this.#target.close();
    this.#line.close();
    await super[Symbol.asyncDispose]();
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
    await this.server.start(
      `--server-port=${this.#frontend}`,
      `--server-cert=${own}.crt`,
      `--server-key=${own}.key`,
      `--server-ca-cert=${ca}`,
    );
    const token = await this.server.createToken("--uses=9", "--ttl=12h");
    const agents = new Map<string, Child>();
    for (const node of NODES) {
      const port = node === SLOW ? this.#line.port : this.server.agentPort;
      const agent = this.agent(
        node,
        `--server=127.0.0.1:${port}`,
        `--join=${token}`,
        // It would learn the short way.
        "--learn-servers=false",
      );
      agents.set(node, agent);
      await agent.untilPrinted(/linked to server/);
    }
    this.#line.delayMs = DELAY_MS;
    await agents.get(GONE)!.stop("SIGKILL");
    for (const [user, nodes] of CALLERS) {
      await this.#call(user, nodes, [
        `--ca-cert=${ca}`,
        `--cert=${await files(user)}.crt`,
        `--key=${this.workspace.folder}/${user}.key`,
      ]);
    }
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  }

  /** A forward for each, and somebody who talks through it. */
  async #call(
    user: string,
    nodes: readonly string[],
    shown: readonly string[],
  ): Promise<void> {
    const { port } = this.#target.addr;
    const forwards = nodes.map((node) => ({ node, at: freePort() }));
    const child = this.run(
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

/** Where they stand. */
export const RECORDINGS = new URL("../../docs/recordings/", import.meta.url);

/** A terminal of somebody's. */
const [COLUMNS, ROWS] = [104, 60];

/** Where the recorded server would be on a machine. */
const STATE = "/var/lib/tunnel/server";

interface Question {
  readonly file: string;
  readonly title: string;
  /** A line that must be there, and those that are marked. */
  readonly answer: RegExp;
}

/** What a person asks first; see docs/troubleshooting.md. */
// deno-fmt-ignore: the columns are the point.
export const QUESTIONS: readonly Question[] = [
  { file: "offline.svg", title: "Which nodes are offline, and since when",
    answer: new RegExp(String.raw`^\s+${GONE} .*\d{4}-\d\d-\d\d`) },
  { file: "slow.svg", title: `Why the node ${SLOW} is slow`,
    answer: new RegExp(String.raw`^\s+slow: ${SLOW} .*\d ms.*`) },
  { file: "connected.svg", title: `Who is connected to the node ${SLOW}`,
    answer: new RegExp(String.raw`^\s+\S.* ${SLOW} .* tcp |^\s+connected: `) },
  { file: "expires.svg", title: "What expires next", answer: /^\s+\d+[dhms]\S*\s+frontend certificate / },
];

/** What the command writes to a terminal: `script` gives it one. */
async function written(stage: RecordedStage): Promise<string> {
  const words = ourCommand("status").map((word) => `'${word}'`).join(" ");
  const { stdout, success } = await new Deno.Command("script", {
    args: [
      "-qec",
      `stty cols ${COLUMNS} rows ${ROWS}; exec ${words}`,
      "/dev/null",
    ],
    env: {
      TUNNEL_STATE_DIR: stage.server.stateDirectory,
      TERM: "xterm-256color",
      NO_COLOR: "",
    },
    stdin: "null",
    stderr: "null",
  }).output();
  const text = new TextDecoder().decode(stdout);
  if (!success) throw new Error(plain(text));
  return text.replaceAll(stage.server.stateDirectory, STATE)
    .replaceAll(stage.workspace.folder, "/var/lib/tunnel");
}

if (import.meta.main) {
  await using stage = await RecordedStage.start();
  const output = await written(stage);
  for (const { file, title, answer } of QUESTIONS) {
    if (!plain(output).split("\n").some((line) => answer.test(line))) {
      throw new Error(`no answer to "${title}" in:\n${output}`);
    }
    const svg = terminalSvg({
      title,
      command: "tunnel status",
      output,
      isAnswer: (line) => answer.test(line),
    });
    await Deno.writeTextFile(new URL(file, RECORDINGS), svg);
    console.log(
      `docs/recordings/${file} (${(svg.length / 1e3).toFixed(1)} kB)`,
    );
  }
}
