/**
 * A state directory goes from one version to another and back: a server's with
 * its authority, tokens and nodes, and those of nodes that have joined.
 */

import { assert, assertEquals } from "@std/assert";
import type { Child } from "../support/program/child.ts";
import { Workspace } from "../support/program/workspace.ts";
import { programWords } from "../support/program/program.ts";
import { olderProgram } from "../support/program/older_program.ts";
import { StateServers } from "../support/rigs/state_servers.ts";

async function nodesOf(at: StateServers, state: string): Promise<string[]> {
  const text = await at.must("node", "list", "--json", state);
  return JSON.parse(text).map(({ name }: { name: string }) => name).sort();
}

Deno.test("versions: a state of the older one is read by ours, and the other way round", async () => {
  const older = await olderProgram();
  const workspace = await Workspace.make();
  await using at = new StateServers(workspace, []);
  const directory = workspace.path("server");
  const state = `--state-dir=${directory}`;
  const take = (version: "older" | "ours") => {
    const words = version === "ours" ? programWords() : [older];
    at.program = (...command) => [...words, ...command];
  };
  const folders: string[] = [];
  /** A server of a version, with every node that has joined until now. */
  const run = async (
    version: "older" | "ours",
    work: (server: Awaited<ReturnType<StateServers["start"]>>) => Promise<void>,
  ) => {
    take(version);
    const server = await at.start(directory);
    const agents: Child[] = [];
    for (const folder of folders) agents.push(await at.link(folder, server));
    await work(server);
    for (const agent of agents) await agent.stop("SIGKILL");
    await server.child.stop();
  };
  const join = async (
    name: string,
    token: string,
    server: { readonly address: string },
  ) => {
    const { success, folder, stderr } = await at.join(name, token, server);
    assert(success, stderr);
    folders.push(folder);
    const agent = await at.link(folder, server);
    await agent.stop("SIGKILL");
  };

  const tokens: string[] = [];
  await run("older", async (server) => {
    await join("a", await at.token(state, "--node=a"), server);
    for (const name of ["b", "c"]) {
      tokens.push(await at.token(state, `--node=${name}`));
    }
  });
  await run("ours", async (server) => {
    await join("b", tokens[0]!, server);
    assertEquals(await nodesOf(at, state), ["a", "b"]);
    tokens.push(await at.token(state, "--node=d"));
  });
  await run("older", async (server) => {
    await join("c", tokens[1]!, server);
    await join("d", tokens[2]!, server);
    assertEquals(await nodesOf(at, state), ["a", "b", "c", "d"]);
    await at.must("node", "revoke", "a", state);
  });
  folders.shift();
  await run("ours", async () => {
    assertEquals(await nodesOf(at, state), ["a", "b", "c", "d"]);
    const list = JSON.parse(await at.must("node", "list", "--json", state));
    const [a] = list.filter(({ name }: { name: string }) => name === "a");
    assertEquals(a.state, "revoked");
    for (
      const row of JSON.parse(await at.must("token", "list", "--json", state))
    ) {
      assertEquals(row.state, "used up");
    }
  });
  await workspace.remove();
});
