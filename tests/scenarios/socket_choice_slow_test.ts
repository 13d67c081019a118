/**
 * `TUNNEL_SOCKETS`, the way back to other sockets: with each of them, and with
 * no more than the packaged program may do, a tunnel carries octets, and its log
 * says which sockets they are.
 *
 * @module
 */

import { assertEquals, assertStringIncludes } from "@std/assert";
import { permissionsOf } from "../../cli/permissions.ts";
import { V8_FLAGS } from "../../cli/self_command.ts";
import { SOCKET_CHOICES } from "../../host/sockets/polled/socket_choice.ts";
import { Child } from "../peers/child.ts";
import { freePort } from "../peers/ports.ts";
import { startServer } from "../peers/tunnel.ts";
import { Workspace } from "../peers/workspace.ts";
import { Prng } from "../support/prng.ts";
import { WAITERS } from "../support/socket_kinds.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** A command with exactly the permissions of the packaged one. */
function command(name: string, choice: string): string[] {
  return [
    ...["env", `TUNNEL_SOCKETS=${choice}`],
    ...[Deno.execPath(), "run", "--quiet", "--no-prompt", V8_FLAGS],
    ...permissionsOf(name),
    ...[`--config=${ROOT}deno.json`, `${ROOT}main.ts`, name],
  ];
}

const WORDS: Readonly<Record<string, string>> = {
  platform: "Local sockets are the platform's: $TUNNEL_SOCKETS says so",
  thread:
    "Local sockets are the C library's: a thread waits for them, as $TUNNEL_SOCKETS says",
  ring: "Local sockets are the C library's: io_uring wakes the program",
};

for (const choice of SOCKET_CHOICES) {
  Deno.test({
    name: `a tunnel over sockets of the kind "${choice}"`,
    ignore: choice !== "platform" && WAITERS[choice] === undefined,
    fn: async () => {
      const workspace = await Workspace.make();
      const server = await startServer(workspace, {
        maker: "ours",
        mode: "auto",
        transport: "uds",
        program: command("server", choice),
        extraFlags: ["--v=4"],
      });
      const { frontend } = server;
      if (frontend.transport !== "uds") throw new TypeError("Expected a path");
      const agent = await startAgent(workspace, server.agentPort, choice);
      using target = Deno.listen({ hostname: "127.0.0.1", port: 0 });
      const echoed = echoOne(target);
      const octets = new Uint8Array(new Prng(7).octets(3_000_000));
      const answer = await dial(choice, [
        `127.0.0.1:${(target.addr as Deno.NetAddr).port}`,
        `--server=unix:${frontend.path}`,
      ], octets);
      await echoed;
      assertEquals(answer.length, octets.length);
      assertEquals(answer.every((octet, at) => octet === octets[at]), true);
      await agent.stop("SIGKILL");
      await server.child.stop("SIGKILL");
      for (const { logFile } of [agent, server.child]) {
        assertStringIncludes(await Deno.readTextFile(logFile), WORDS[choice]!);
      }
      await workspace.remove();
    },
  });
}

async function startAgent(
  workspace: Workspace,
  serverPort: number,
  choice: string,
): Promise<Child> {
  const { ca, agent } = workspace.certificates;
  const healthPort = freePort();
  const child = new Child({
    name: "our agent",
    command: [
      ...command("agent", choice),
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

/** What comes back for `octets`. */
async function dial(
  choice: string,
  flags: readonly string[],
  octets: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array> {
  const [program, ...words] = command("dial", choice);
  const child = new Deno.Command(program!, {
    args: [...words, ...flags],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  const [{ stdout, stderr }] = await Promise.all([
    child.output(),
    writer.write(octets).then(() => writer.close(), () => {}),
  ]);
  assertEquals(new TextDecoder().decode(stderr), "");
  return stdout;
}
