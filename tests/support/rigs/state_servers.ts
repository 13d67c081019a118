/**
 * Real server processes that are one identity, because they have their state in
 * common: for tests against whatever it is kept in.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { Child } from "../program/child.ts";
import { type Ended, runToEnd } from "../program/run.ts";
import { ourCommand } from "../program/tunnel.ts";
import type { Workspace } from "../program/workspace.ts";
import { eventually, patience } from "../watch/patience.ts";
import { NO_PORTS, ServerProcess } from "./processes.ts";

/** One of the servers. */
export type StateServer = ServerProcess & { readonly stateDirectory: string };

/** What a command said. */
export interface Said extends Ended {
  readonly success: boolean;
}

/** See the module description. */
export class StateServers implements AsyncDisposable {
  readonly #children: Child[] = [];
  readonly #servers: ServerProcess[] = [];
  /** What is started from now on; a test may take another version. */
  program: (...words: readonly string[]) => readonly string[] = ourCommand;

  /** What is asked of the state itself; by default {@linkcode program}. */
  commands: ((...words: readonly string[]) => readonly string[]) | undefined;

  /** @param flags That say where the state is, for servers and commands alike. */
  constructor(
    private readonly workspace: Workspace,
    readonly flags: readonly string[],
  ) {}

  /** Another server, with a directory of its own. */
  async start(
    stateDirectory = this.workspace.path("state-server"),
    ...more: readonly string[]
  ): Promise<StateServer> {
    const server = new ServerProcess(this.workspace, {
      flags: [`--state-dir=${stateDirectory}`, ...this.flags, "--admin-port=0"],
    });
    server.program = this.program("server");
    this.#servers.push(server);
    await server.start("--server-names=127.0.0.1", ...more);
    return Object.assign(server, { stateDirectory });
  }

  /** Runs a command on the state, to its end. */
  run(command: string, ...words: readonly string[]): Promise<Said> {
    const none = `--state-dir=${this.workspace.path("no-server")}`;
    // First: the words may say another one.
    const program = this.commands ?? this.program;
    return said(program(command, none, ...words, ...this.flags));
  }

  /** The same; it must succeed. */
  async must(command: string, ...words: readonly string[]): Promise<string> {
    const { success, stdout, stderr } = await this.run(command, ...words);
    assert(success, `${command} ${words.join(" ")}: ${stderr}`);
    return stdout;
  }

  async token(...flags: readonly string[]): Promise<string> {
    const text = await this.must("token", "create", "--json", ...flags);
    return JSON.parse(text).token;
  }

  /** A node joins at a server. @returns What was said, and its directory. */
  async join(
    name: string,
    token: string,
    { address }: Pick<StateServer, "address">,
  ): Promise<Said & { readonly folder: string }> {
    const folder = this.workspace.path(`node-${name}`);
    const words = [`--server=${address}`, `--node=${name}`];
    const answer = await said(
      this.program("join", token, ...words, `--state-dir=${folder}`),
    );
    return { ...answer, folder };
  }

  /** An agent of a node that joined, linked to servers. */
  async link(
    folder: string,
    ...servers: readonly Pick<StateServer, "address">[]
  ): Promise<Child> {
    const child = new Child({
      name: "agent",
      command: [
        ...this.program("agent"),
        `--state-dir=${folder}`,
        `--server=${servers.map(({ address }) => address).join(",")}`,
        ...NO_PORTS,
      ],
      logFile: this.workspace.path("state-agent.log"),
    });
    this.#children.push(child);
    await child.untilPrinted(/linked to server/);
    return child;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children.reverse()) await child.stop("SIGKILL");
    for (const server of this.#servers) await server[Symbol.asyncDispose]();
  }
}

/** What was printed twice. */
export function again({ source }: RegExp): RegExp {
  return new RegExp(`${source}[^]*${source}`);
}

async function said(command: readonly string[]): Promise<Said> {
  const ended = await runToEnd(command);
  return { ...ended, success: ended.code === 0 };
}

/** A node joins on one server and is known to the other; then it is not. */
export async function checkJoinAndRevoke(at: StateServers): Promise<void> {
  const [one, other] = [await at.start(), await at.start()];
  const { success, folder, stderr } = await at.join(
    "edge-1",
    await at.token("--node=edge-1"),
    one,
  );
  assert(success, stderr);
  const agent = await at.link(folder, other);
  const list = JSON.parse(await at.must("node", "list", "--json"));
  assertEquals(list.map(({ name }: { name: string }) => name), ["edge-1"]);
  const revoked = other.child.untilPrinted(/node was revoked/);
  await at.must("node", "revoke", "edge-1");
  // The command takes longer to end than the word of it.
  const startMs = performance.now();
  await revoked;
  const tookMs = performance.now() - startMs;
  assert(tookMs < patience(1_000), `it took ${tookMs} ms`);
  await agent.untilPrinted(/node was revoked/);
  await at.must("node", "approve", "edge-1");
  await agent.untilPrinted(again(/linked to server/));
  await at.must("node", "forget", "edge-1");
  await agent.untilPrinted(/knows no such node/);
  for (const { child } of [one, other]) {
    const log = await child.logTail();
    assert(!/Forbidden|permission denied/.test(log), log);
  }
}

/**
 * Of two servers that start at once one makes the state; of many who show a token
 * at both at once, one gets in.
 */
async function checkTokenRace(at: StateServers): Promise<void> {
  const servers = await Promise.all([at.start(), at.start()]);
  const [bundle, other] = servers.map(({ stateDirectory }) =>
    Deno.readTextFileSync(`${stateDirectory}/ca/bundle.crt`)
  );
  assertEquals(bundle, other, "two servers that start at once");
  const token = await at.token("--node=*");
  const joins = await Promise.all(
    ["a", "b", "c", "d"].map((name, index) =>
      at.join(name, token, servers[index % 2]!)
    ),
  );
  const won = joins.filter(({ success }) => success);
  assertEquals(won.length, 1, joins.map(({ stderr }) => stderr).join("\n"));
  for (const { success, stderr } of joins) {
    if (!success) assert(/is used up/.test(stderr), stderr);
  }
  const [row] = JSON.parse(await at.must("token", "list", "--json"));
  assertEquals([row.state, row.usedBy.length], ["used up", 1]);
}

/** A change of authorities is one on all servers. */
async function checkRotation(at: StateServers): Promise<void> {
  const servers = [await at.start(), await at.start()];
  for (const step of ["rotate", "activate"]) {
    const printed = await at.must("ca", step);
    assert(printed.includes("issues"), printed);
    const pem = await at.must("ca", "show", "--pem");
    await eventually(
      `${step} is known to both`,
      () =>
        servers.every(({ stateDirectory }) =>
          Deno.readTextFileSync(`${stateDirectory}/ca/bundle.crt`) === pem
        ),
    );
  }
  // Who joins on either gets a certificate that both take.
  const { folder } = await at.join(
    "n",
    await at.token("--node=n"),
    servers[0]!,
  );
  await at.link(folder, servers[1]!);
}

/** What holds of a shared state wherever it is, by sentence. */
export function stateCases<Context>(
  place: string,
  serversOn: (context: Context) => Promise<StateServers>,
): Readonly<Record<string, (context: Context) => Promise<void>>> {
  const sentences = {
    "a node joins on one server and links to the other, until it is revoked":
      checkJoinAndRevoke,
    "a token that four show at two servers lets one in": checkTokenRace,
    "a change of authorities is one on all servers": checkRotation,
  };
  return Object.fromEntries(
    Object.entries(sentences).map(([sentence, check]) => [
      `state in ${place}: ${sentence}`,
      async (context: Context) => {
        await using at = await serversOn(context);
        await check(at);
      },
    ]),
  );
}
