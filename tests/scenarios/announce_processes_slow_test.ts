/**
 * What a node announces, as people run it: a server, an agent, and on another
 * node a proxy, a relay and a netcat, all of them processes.
 *
 * @module
 */

import { assertEquals, assertMatch } from "@std/assert";
import { Child } from "../support/program/child.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { Workspace } from "../support/program/workspace.ts";
import { IdentityStage } from "../support/rigs/identity_stage.ts";
import { ask, ProxyRig } from "../support/rigs/proxy_rig.ts";
import { eventually } from "../support/rigs/tunnel_harness.ts";

const ANY_PORTS = [
  "--health-server-host=127.0.0.1",
  "--health-server-port=0",
  "--admin-server-port=0",
];

/** What a service is answered at a port of loopback; empty when it is not. */
async function answerAt(port: number): Promise<string> {
  try {
    const conn = await Deno.connect({ hostname: "127.0.0.1", port });
    try {
      return await ask(conn, "hello");
    } finally {
      conn.close();
    }
  } catch (error) {
    // No listener, or a reset: it is not there now.
    if (error instanceof Error) return "";
    throw error;
  }
}

/** A netcat of the node whose identity is there, to a port behind edge-1. */
async function dialAs(stateDirectory: string, port: number) {
  const [program, ...args] = ourCommand(
    ...["dial", `127.0.0.1:${port}`, "--node=id=edge-1"],
    `--state-dir=${stateDirectory}`,
  );
  const netcat = new Deno.Command(program!, {
    ...{ args, stdin: "piped", stdout: "piped", stderr: "piped" },
  }).spawn();
  const writer = netcat.stdin.getWriter();
  await writer.write(new TextEncoder().encode("hello"));
  // It may have gone before it was told everything.
  await writer.close().catch(() => {});
  const { code, stdout, stderr } = await netcat.output();
  const decoder = new TextDecoder();
  return {
    code,
    stdout: decoder.decode(stdout),
    stderr: decoder.decode(stderr),
  };
}

Deno.test("a node's service is reached from another node, through a server's death", async () => {
  const workspace = await Workspace.make();
  const stage = new IdentityStage(workspace);
  await using backends = new ProxyRig();
  const children: Child[] = [];
  const run = (name: string, ...words: readonly string[]) => {
    const logFile = workspace.path(`${name}.log`);
    const child = new Child({ name, command: ourCommand(...words), logFile });
    children.push(child);
    return child;
  };
  const state = { one: workspace.path("one"), two: workspace.path("two") };
  try {
    await stage.start("--discovery");
    const at = `--server=127.0.0.1:${stage.agentPort}`;
    const target = backends.echo("edge-1: ");
    const tokens = [await stage.createToken(), await stage.createToken()];
    run(
      "agent",
      ...["agent", at, `--join=${tokens[0]}`, "--node=edge-1", ...ANY_PORTS],
      ...[`--state-dir=${state.one}`, `--announce=web:80=127.0.0.1:${target}`],
    );
    const [program, ...join] = ourCommand("join", tokens[1]!, at);
    const joined = await new Deno.Command(program!, {
      args: [...join, "--node=edge-2", `--state-dir=${state.two}`],
    }).output();
    assertEquals(joined.code, 0, new TextDecoder().decode(joined.stderr));
    const proxy = run(
      "proxy",
      ...["proxy", `--discovery=127.0.0.1:${stage.agentPort}`],
      ...[`--state-dir=${state.two}`, "--discovery-state=none"],
      ...["--admin-port=0", "--connect-listen=127.0.0.1:0"],
    );
    const served = /default\/web is served on [^ ]*:(\d+)/;
    const port = Number((await proxy.untilPrinted(served))[1]);
    assertEquals(await answerAt(port), "edge-1: hello");
    const answered = await dialAs(state.two, target);
    assertEquals(answered.stdout, "edge-1: hello", answered.stderr);
    const refused = await dialAs(state.two, 1);
    assertMatch(refused.stderr, /no service that edge-2 sees has it/);
    assertEquals(refused.code, 3);
    // The proxy goes on listening, and the service is back with the server.
    await stage.server!.stop("SIGKILL");
    assertEquals(await answerAt(port), "");
    await stage.start("--discovery");
    await eventually(
      "the service is reached again",
      async () => await answerAt(port) === "edge-1: hello",
    );
  } finally {
    for (const child of children) await child.stop("SIGKILL");
    await stage.server?.stop("SIGKILL");
    await workspace.remove();
  }
});
