/**
 * The server's authority is changed while nodes run: one with an agent and a
 * proxy, one with a proxy alone, one that only dials. All follow, and nobody has
 * to be started again.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { Child } from "../support/program/child.ts";
import { freePort } from "../support/program/ports.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { Workspace } from "../support/program/workspace.ts";
import { IdentityStage } from "../support/rigs/identity_stage.ts";
import { ask, ProxyRig } from "../support/rigs/proxy_rig.ts";
import { eventually } from "../support/rigs/tunnel_harness.ts";

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command of ours, to its end. */
async function run(words: readonly string[], input = ""): Promise<Ended> {
  const [program, ...args] = ourCommand(...words);
  const child = new Deno.Command(program!, {
    ...{ args, stdin: "piped", stdout: "piped", stderr: "piped" },
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(input)).catch(() => {});
  await writer.close().catch(() => {});
  const { code, stdout, stderr } = await child.output();
  const decoder = new TextDecoder();
  return {
    code,
    stdout: decoder.decode(stdout),
    stderr: decoder.decode(stderr),
  };
}

/** What a service says at a port of a proxy. */
async function answerAt(at: {
  readonly hostname: string;
  readonly port: number;
}): Promise<string> {
  const conn = await Deno.connect(at);
  try {
    return await ask(conn, "hello");
  } finally {
    conn.close();
  }
}

class Rig implements AsyncDisposable {
  readonly stage: IdentityStage;
  readonly backends = new ProxyRig();
  readonly #children: Child[] = [];

  private constructor(readonly workspace: Workspace) {
    this.stage = new IdentityStage(workspace);
  }

  static async open(): Promise<Rig> {
    const rig = new Rig(await Workspace.make());
    await rig.stage.start("--discovery");
    return rig;
  }

  start(name: string, ...words: readonly string[]): Child {
    const logFile = this.workspace.path(`${name}.log`);
    const child = new Child({ name, command: ourCommand(...words), logFile });
    this.#children.push(child);
    return child;
  }

  async join(node: string): Promise<string> {
    const folder = this.workspace.path(node);
    const { code, stderr } = await run([
      ...["join", await this.stage.createToken(), `--node=${node}`],
      ...[`--server=127.0.0.1:${this.stage.agentPort}`],
      `--state-dir=${folder}`,
    ]);
    assertEquals(code, 0, stderr);
    return folder;
  }

  /** A proxy on the node whose identity is there. */
  async proxy(name: string, folder: string, hostname: string) {
    const admin = freePort();
    const child = this.start(
      name,
      ...["proxy", `--discovery=127.0.0.1:${this.stage.agentPort}`],
      ...[`--state-dir=${folder}`, "--discovery-state=none"],
      ...[`--admin-port=${admin}`, `--bind-address=${hostname}`],
    );
    const served = /default\/web is served on [^ ]*:(\d+)/;
    const port = Number((await child.untilPrinted(served))[1]);
    return { child, admin, at: { hostname, port } };
  }

  ca(...words: readonly string[]): Promise<Ended> {
    return run([
      ...["ca", ...words],
      `--state-dir=${this.stage.stateDirectory}`,
    ]);
  }

  /** Who trusts the authority with this role, or holds a certificate of it. */
  async nodesOf(role: string, what: "knownTo" | "heldBy"): Promise<string[]> {
    const { stdout } = await this.ca("show", "--json");
    const rows: Record<string, unknown>[] = JSON.parse(stdout);
    return rows.find((row) => row.role === role)?.[what] as string[] ?? [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) await child.stop("SIGKILL");
    await this.stage.server?.stop("SIGKILL");
    await this.backends[Symbol.asyncDispose]();
    await this.workspace.remove();
  }
}

/** When a proxy serves again, and says so. */
async function untilBack({ at, admin, child }: {
  readonly at: { readonly hostname: string; readonly port: number };
  readonly admin: number;
  readonly child: Child;
}): Promise<void> {
  await eventually("the proxy is back", async () => {
    const answer = await answerAt(at).catch(() => "");
    return answer === "edge-1: hello";
  });
  const ready = await fetch(`http://127.0.0.1:${admin}/readyz`);
  assertEquals(await ready.text(), "ok", await child.logTail());
}

Deno.test("rotate, activate, retire: every user of an identity follows by itself", async () => {
  await using rig = await Rig.open();
  const target = rig.backends.echo("edge-1: ");
  const [one, two, three] = [
    await rig.join("edge-1"),
    await rig.join("edge-2"),
    await rig.join("edge-3"),
  ];
  rig.start(
    "agent",
    ...["agent", `--state-dir=${one}`, `--announce=web:80=127.0.0.1:${target}`],
    ...["--health-server-host=127.0.0.1", "--health-server-port=0"],
    "--admin-server-port=0",
  );
  const beside = await rig.proxy("beside", one, "127.0.0.1");
  const alone = await rig.proxy("alone", two, "127.0.0.2");
  const dial = [
    ...["dial", `127.0.0.1:${target}`, "--node=id=edge-1"],
    `--state-dir=${three}`,
  ];
  assertEquals((await run(dial, "hello")).stdout, "edge-1: hello");

  assertEquals((await rig.ca("rotate")).code, 0);
  await eventually(
    "those that run know the next one",
    async () => (await rig.nodesOf("next", "knownTo")).length === 2,
    90_000,
  );
  assertMatch((await rig.ca("show")).stdout, /Not yet known .*: edge-3/);
  // The first learns of it, the next one says that it has.
  await run(dial, "hello");
  assertEquals((await run(dial, "hello")).stdout, "edge-1: hello");
  assertEquals(await rig.nodesOf("next", "knownTo"), [
    "edge-1",
    "edge-2",
    "edge-3",
  ]);

  assertEquals((await rig.ca("activate")).code, 0);
  const refused = await rig.ca("retire");
  assertEquals(refused.code, 1);
  for (const node of ["edge-1", "edge-2", "edge-3"]) {
    assert(refused.stderr.includes(node), refused.stderr);
  }
  await run(dial, "hello");
  await eventually(
    "those that run have renewed",
    async () =>
      (await rig.nodesOf("previous", "heldBy")).every((n) => n === "edge-3"),
    90_000,
  );
  // Who only dials has heard of it by the last one, and renews with the next.
  assertEquals((await run(dial, "hello")).stdout, "edge-1: hello");
  const retired = await rig.ca("retire");
  assertEquals(retired.code, 0, retired.stderr);

  await rig.stage.server!.stop("SIGTERM");
  await rig.stage.start("--discovery");
  for (const proxy of [beside, alone]) await untilBack(proxy);
  const answer = await run(dial, "hello");
  assertEquals(answer.stdout, "edge-1: hello", answer.stderr);
});
