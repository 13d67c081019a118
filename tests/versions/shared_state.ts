/**
 * Servers of two versions that have one state, wherever it is: they are one
 * identity, whichever made it, and serve agents and callers of either version.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { programWords } from "../support/program/program.ts";
import { olderProgram } from "../support/program/older_program.ts";
import { runToEnd } from "../support/program/run.ts";
import type { Workspace } from "../support/program/workspace.ts";
import { ServerProcess } from "../support/rigs/processes.ts";
import { ProxyRig } from "../support/rigs/proxy_rig.ts";
import {
  stateCases,
  type StateServers,
} from "../support/rigs/state_servers.ts";
import { commandOfVersion, PAIRS, type Version } from "./versions.ts";

/** Goes each way, and comes back. */
const TEXT = "what was said is heard ".repeat(2_000);

/**
 * What holds of a state that servers of two versions share, by sentence.
 *
 * @param place Where it is, in words.
 * @param serversOn Servers that have one there, each time another.
 */
export function sharedStateCases<Context>(
  place: string,
  workspaceOf: (context: Context) => Workspace,
  serversOn: (context: Context) => Promise<StateServers>,
): Readonly<Record<string, (context: Context) => Promise<void>>> {
  const cases: Record<string, (context: Context) => Promise<void>> = {};
  for (const pair of PAIRS) {
    const [maker, other] = pair;
    const where = `${place} that is made by ${maker} and shared by ${other}`;
    // Whatever is started is of the one and the other version in turn.
    Object.assign(
      cases,
      stateCases(where, async (context: Context) => {
        const at = await serversOn(context);
        const wordsOf = await wordsOfVersions();
        let turn = 0;
        at.program = (...words) => [...wordsOf[pair[turn++ % 2]!], ...words];
        return at;
      }),
    );
    cases[
      `state in ${where}: agents and callers of both are served by both, and each goes on with what the other wrote`
    ] = async (context) => {
      await using scene = await Scene.open(
        workspaceOf(context),
        await serversOn(context),
      );
      await scene.startServers(maker, other);
      await scene.join("older");
      await scene.join("ours");
      await scene.dialEach();
      // Each takes the other's place.
      await scene.stopServers();
      await scene.startServers(other, maker);
      await scene.untilLinked();
      await scene.dialEach();
    };
  }
  return cases;
}

async function wordsOfVersions(): Promise<Record<Version, readonly string[]>> {
  return { ours: programWords(), older: [await olderProgram()] };
}

/** Two servers that know of each other, and a node of each version. */
class Scene implements AsyncDisposable {
  readonly #targets = new ProxyRig();
  readonly #target = `127.0.0.1:${this.#targets.echo()}`;
  readonly #nodes: Version[] = [];
  readonly #servers: readonly ServerProcess[];

  private constructor(
    workspace: Workspace,
    private readonly at: StateServers,
    private readonly wordsOf: Record<Version, readonly string[]>,
  ) {
    this.#servers = ["s0", "s1"].map((id) => {
      const server = new ServerProcess(workspace, {
        id,
        flags: [`--state-dir=${workspace.path(id)}`, ...at.flags],
      });
      server.addFlags(
        ...["--v=2", "--admin-port=0", "--server-names=127.0.0.1"],
        ...["--peer-forwarding", `--advertise-address=${server.address}`],
        ...[`--uds-name=${server.socket}`, "--handover-socket=none"],
      );
      return server;
    });
  }

  static async open(workspace: Workspace, at: StateServers): Promise<Scene> {
    return new Scene(workspace, at, await wordsOfVersions());
  }

  /** At the places that those before had. */
  async startServers(...versions: readonly Version[]): Promise<void> {
    for (const [index, version] of versions.entries()) {
      const server = this.#servers[index]!;
      server.program = [...this.wordsOf[version], "server"];
      await server.start();
    }
  }

  async stopServers(): Promise<void> {
    for (const server of this.#servers) await server.stop("SIGKILL");
  }

  /** A node of a version joins at the first server, and is told of the other. */
  async join(version: Version): Promise<void> {
    this.at.program = (...words) => [...this.wordsOf[version], ...words];
    const [first] = this.#servers as [ServerProcess];
    const token = await this.at.token(`--node=${version}`);
    const { success, folder, stderr } = await this.at
      .join(version, token, first);
    assert(success, stderr);
    await this.at.link(folder, first);
    this.#nodes.push(version);
    await this.untilLinked();
  }

  /** Each server has each agent. */
  async untilLinked(): Promise<void> {
    for (const server of this.#servers) {
      for (const node of this.#nodes) await server.untilLinked(`agent=${node}`);
    }
  }

  /** Callers of both versions reach both nodes over both servers. */
  async dialEach(): Promise<void> {
    for (const { socket } of this.#servers) {
      for (const node of this.#nodes) {
        for (const version of ["older", "ours"] as const) {
          const { code, stdout, stderr } = await runToEnd(
            await commandOfVersion(
              version,
              ...["dial", this.#target, `--node=${node}`],
              `--server=unix:${socket}`,
            ),
            { input: TEXT },
          );
          const way = `${version} caller, ${socket}, node ${node}`;
          assertEquals([code, stderr], [0, ""], way);
          assertEquals(stdout, TEXT, way);
        }
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.at[Symbol.asyncDispose]();
    for (const server of this.#servers) await server[Symbol.asyncDispose]();
    await this.#targets[Symbol.asyncDispose]();
  }
}
