import { assert, assertEquals } from "@std/assert";
import { freePort } from "../support/program/ports.ts";
import { plainEnvironment, runTunnel } from "../support/program/run.ts";
import { Workspace } from "../support/program/workspace.ts";
import { NO_PORTS } from "../support/rigs/processes.ts";
import { IdentityServer, NodeStage } from "../support/rigs/node_stage.ts";

// What people see who join wrongly: one line, what to do, and an exit code.

/**
 * Variables that name authorities, such as `NODE_EXTRA_CA_CERTS`, have hidden
 * that nodes could not join: the environment is a plain one.
 */
async function tunnel(home: string, words: readonly string[]) {
  const env = plainEnvironment(home);
  const { code, stdout, stderr } = await runTunnel(words, {
    ...{ env, clearEnv: true },
  });
  const errors = stderr.trim();
  return { code, stdout, line: errors.split("\n").at(-1)!, errors };
}

Deno.test("a join that cannot be ends with one line and what to do", async () => {
  await using programs = new NodeStage(await Workspace.make());
  const { workspace, server: stage } = programs;
  const other = new IdentityServer(workspace);
  programs.servers.push(other);
  await Promise.all([stage.start(), other.start()]);
  const run = (...words: readonly string[]) => tunnel(workspace.folder, words);
  const at = (port: number) => `--server=127.0.0.1:${port}`;
  const token = await stage.createToken("--node=edge-*");
  const wrongSecret = token.slice(0, -2) +
    (token.endsWith("AA") ? "BA" : "AA");
  const directory = () => `--state-dir=${workspace.path("agent")}`;
  for (
    const [name, port, said, words] of [
      ["edge-7", stage.agentPort, wrongSecret, "tunnel token create"],
      ["edge-7", freePort(), token, "is the server running there?"],
      ["edge-7", other.agentPort, token, "correct --server, or make a token"],
      ["shop-1", stage.agentPort, token, "use such a name"],
    ] as const
  ) {
    const flags = [at(port), `--node=${name}`];
    const once = await run("join", said, ...flags, directory());
    assert(once.line.startsWith("tunnel join: Cannot "), once.errors);
    assertEquals(
      [once.code, once.line.includes(words)],
      [1, true],
      once.line,
    );
    if (words.includes("running")) continue; // An agent waits for that one.
    const all = [...flags, `--join=${said}`, directory(), ...NO_PORTS];
    const agent = await run("agent", ...all);
    assert(agent.line.startsWith("tunnel agent: Cannot "), agent.errors);
    assertEquals(
      [agent.code, agent.line.includes(words)],
      [1, true],
      agent.line,
    );
  }
  const mine = directory();
  const good = ["join", token, at(stage.agentPort), "--node=edge-7", mine];
  const joined = await run(...good);
  assertEquals([joined.code, joined.stdout], [
    0,
    `Joined as edge-7. Next: tunnel agent ${mine.replace("=", " ")}\n`,
  ]);
  const twice = await run(...good);
  assertEquals([twice.code, twice.line.includes("--again")], [1, true]);
  assertEquals((await run(...good, "--again")).code, 0);
});
