/**
 * The server's authority is changed while nodes run: one with an agent and a
 * proxy, one with a proxy alone, one that only dials. All follow, and nobody has
 * to be started again.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { runTunnel } from "../support/program/run.ts";
import { NodeStage, type StagedProxy } from "../support/rigs/node_stage.ts";
import { ask } from "../support/rigs/proxy_rig.ts";
import { eventually } from "../support/rigs/tunnel_harness.ts";

type Proxy = StagedProxy & { readonly hostname: string };

/** What a service says at a port of a proxy. */
async function answerAt({ hostname, port }: Proxy): Promise<string> {
  using conn = await Deno.connect({ hostname, port });
  return await ask(conn, "hello");
}

async function proxyAt(stage: NodeStage, node: string, hostname: string) {
  const proxy = await stage.proxy(node, `--bind-address=${hostname}`);
  return { ...proxy, hostname };
}

/** Which nodes trust the authority with this role, or hold a certificate of it. */
async function nodesOf(
  stage: NodeStage,
  role: string,
  what: "knownTo" | "heldBy",
): Promise<string[]> {
  const { stdout } = await stage.ask("ca", "show", "--json");
  const rows: Record<string, unknown>[] = JSON.parse(stdout);
  return rows.find((row) => row.role === role)?.[what] as string[] ?? [];
}

/** When a proxy serves again, and says so. */
async function untilBack(proxy: Proxy): Promise<void> {
  await eventually("the proxy is back", async () => {
    const answer = await answerAt(proxy).catch(() => "");
    return answer === "edge-1: hello";
  });
  const ready = await fetch(`http://127.0.0.1:${proxy.adminPort}/readyz`);
  assertEquals(await ready.text(), "ok", await proxy.child.logTail());
}

Deno.test("rotate, activate, retire: every user of an identity follows by itself", async () => {
  await using stage = await NodeStage.open("--discovery");
  const target = stage.echo("edge-1: ");
  for (const node of ["edge-1", "edge-2"]) await stage.join(node);
  const three = await stage.join("edge-3");
  stage.agent("edge-1", `--announce=web:80=127.0.0.1:${target}`);
  const beside = await proxyAt(stage, "edge-1", "127.0.0.1");
  const alone = await proxyAt(stage, "edge-2", "127.0.0.2");
  const run = (words: readonly string[], input: string) =>
    runTunnel(words, { input });
  const dial = [
    ...["dial", `127.0.0.1:${target}`, "--node=id=edge-1"],
    `--state-dir=${three}`,
  ];
  assertEquals((await run(dial, "hello")).stdout, "edge-1: hello");

  assertEquals((await stage.ask("ca", "rotate")).code, 0);
  await eventually(
    "those that run know the next one",
    async () => (await nodesOf(stage, "next", "knownTo")).length === 2,
    90_000,
  );
  assertMatch(
    (await stage.ask("ca", "show")).stdout,
    /Not yet known .*: edge-3/,
  );
  // The first learns of it, the next one says that it has.
  await run(dial, "hello");
  assertEquals((await run(dial, "hello")).stdout, "edge-1: hello");
  assertEquals(await nodesOf(stage, "next", "knownTo"), [
    "edge-1",
    "edge-2",
    "edge-3",
  ]);

  assertEquals((await stage.ask("ca", "activate")).code, 0);
  const refused = await stage.ask("ca", "retire");
  assertEquals(refused.code, 1);
  for (const node of ["edge-1", "edge-2", "edge-3"]) {
    assert(refused.stderr.includes(node), refused.stderr);
  }
  await run(dial, "hello");
  await eventually(
    "those that run have renewed",
    async () =>
      (await nodesOf(stage, "previous", "heldBy")).join() === "edge-3",
    90_000,
  );
  // Who only dials has heard of it by the last one, and renews with the next.
  assertEquals((await run(dial, "hello")).stdout, "edge-1: hello");
  const retired = await stage.ask("ca", "retire");
  assertEquals(retired.code, 0, retired.stderr);

  await stage.server.child.stop("SIGTERM");
  await stage.server.start("--discovery");
  for (const proxy of [beside, alone]) await untilBack(proxy);
  const answer = await run(dial, "hello");
  assertEquals(answer.stdout, "edge-1: hello", answer.stderr);
});
