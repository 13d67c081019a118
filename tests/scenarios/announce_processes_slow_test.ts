/**
 * What a node announces, as people run it: a server, an agent, and on another
 * node a proxy, a relay and a netcat, all of them processes.
 *
 * @module
 */

import { assertEquals, assertMatch } from "@std/assert";
import { runTunnel } from "../support/program/run.ts";
import { NodeStage } from "../support/rigs/node_stage.ts";
import { ask, ProxyRig } from "../support/rigs/proxy_rig.ts";
import { eventually } from "../support/rigs/tunnel_harness.ts";

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

Deno.test("a node's service is reached from another node, through a server's death", async () => {
  await using stage = await NodeStage.open("--discovery");
  await using backends = new ProxyRig();
  const target = backends.echo("edge-1: ");
  await stage.joined("edge-1", `--announce=web:80=127.0.0.1:${target}`);
  const two = await stage.join("edge-2");
  /** A netcat of that node, to a port behind edge-1. */
  const dial = (port: number) =>
    runTunnel([
      ...["dial", `127.0.0.1:${port}`, "--node=id=edge-1"],
      `--state-dir=${two}`,
    ], { input: "hello" });
  const { port } = await stage.proxy("edge-2", "--connect-listen=127.0.0.1:0");
  assertEquals(await answerAt(port), "edge-1: hello");
  const answered = await dial(target);
  assertEquals(answered.stdout, "edge-1: hello", answered.stderr);
  const refused = await dial(1);
  assertMatch(refused.stderr, /no service that edge-2 sees has it/);
  assertEquals(refused.code, 3);
  // The proxy goes on listening, and the service is back with the server.
  await stage.server.child.stop("SIGKILL");
  assertEquals(await answerAt(port), "");
  await stage.server.start("--discovery");
  await eventually(
    "the service is reached again",
    async () => await answerAt(port) === "edge-1: hello",
  );
});
