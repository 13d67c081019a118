/**
 * A tunnel of three processes, each with its own value of an environment variable.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { Child } from "../program/child.ts";
import { freePort } from "../program/ports.ts";
import { ourCommand, startServer } from "../program/tunnel.ts";
import { Workspace } from "../program/workspace.ts";
import { Prng } from "../memory/prng.ts";

/** What the variable is for whom. */
export interface Choices {
  readonly server: string;
  readonly agent: string;
  readonly dial: string;
}

/** What server and agent wrote, with `--v=4`. */
export interface TunnelLogs {
  readonly server: string;
  readonly agent: string;
}

/** Carries 3 MB there and back; fails if they are others, or if anybody complains. */
export async function carryWith(
  variable: string,
  choices: Choices,
): Promise<TunnelLogs> {
  const command = (name: keyof Choices) => [
    ...["env", `${variable}=${choices[name]}`],
    ...ourCommand(name),
  ];
  const workspace = await Workspace.make();
  const server = await startServer(workspace, {
    maker: "ours",
    mode: "auto",
    transport: "uds",
    program: command("server"),
    extraFlags: ["--v=4"],
  });
  const { frontend } = server;
  if (frontend.transport !== "uds") throw new TypeError("Expected a path");
  const agent = await startAgent(
    workspace,
    server.agentPort,
    command("agent"),
  );
  using target = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const echoed = echoOne(target);
  const bytes = new Uint8Array(new Prng(7).bytes(3_000_000));
  const answer = await answerTo(bytes, [
    ...command("dial"),
    `127.0.0.1:${(target.addr as Deno.NetAddr).port}`,
    `--server=unix:${frontend.path}`,
  ]);
  await echoed;
  assertEquals(answer.length, bytes.length);
  assertEquals(answer.every((byte, at) => byte === bytes[at]), true);
  await agent.stop("SIGKILL");
  await server.child.stop("SIGKILL");
  const logs = {
    server: await Deno.readTextFile(server.child.logFile),
    agent: await Deno.readTextFile(agent.logFile),
  };
  await workspace.remove();
  return logs;
}

async function startAgent(
  workspace: Workspace,
  serverPort: number,
  command: readonly string[],
): Promise<Child> {
  const { ca, agent } = workspace.certificates;
  const healthPort = freePort();
  const child = new Child({
    name: "our agent",
    command: [
      ...command,
      "--v=4",
      "--proxy-server-host=127.0.0.1",
      `--proxy-server-port=${serverPort}`,
      `--ca-cert=${ca}`,
      `--agent-cert=${agent.cert}`,
      `--agent-key=${agent.key}`,
      "--health-server-host=127.0.0.1",
      `--health-server-port=${healthPort}`,
      `--admin-server-port=${freePort()}`,
    ],
    logFile: workspace.path("ours-agent.log"),
  });
  await child.untilReady(`http://127.0.0.1:${healthPort}/readyz`);
  return child;
}

async function echoOne(listener: Deno.Listener): Promise<void> {
  const conn = await listener.accept();
  await conn.readable.pipeTo(conn.writable);
}

/** What a program answers to `bytes`, without a word of complaint. */
async function answerTo(
  bytes: Uint8Array<ArrayBuffer>,
  [program, ...args]: readonly string[],
): Promise<Uint8Array> {
  const child = new Deno.Command(program!, {
    args,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  const [{ stdout, stderr }] = await Promise.all([
    child.output(),
    writer.write(bytes).then(() => writer.close(), () => {}),
  ]);
  assertEquals(new TextDecoder().decode(stderr), "");
  return stdout;
}
