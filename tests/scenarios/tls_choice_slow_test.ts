/**
 * `TUNNEL_TLS`, the way back to another TLS: whatever each end speaks, and with no
 * more than the packaged program may do, a tunnel carries octets, and both logs
 * say which TLS it is.
 *
 * @module
 */

import { assertEquals, assertStringIncludes } from "@std/assert";
import { permissionsOf } from "../../cli/permissions.ts";
import { V8_FLAGS } from "../../cli/self_command.ts";
import { openLibssl } from "../../host/libssl/library.ts";
import type { TlsChoice } from "../../host/libssl/tls_choice.ts";
import { Child } from "../peers/child.ts";
import { freePort } from "../peers/ports.ts";
import { startServer } from "../peers/tunnel.ts";
import { Workspace } from "../peers/workspace.ts";
import { Prng } from "../support/prng.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

const WORDS: Readonly<Record<TlsChoice, string>> = {
  platform: "TLS is the platform's: $TUNNEL_TLS says so",
  openssl: "TLS is that of OpenSSL 3.",
};

/** A command with exactly the permissions of the packaged one. */
function command(name: string, choice: TlsChoice): string[] {
  return [
    ...["env", `TUNNEL_TLS=${choice}`],
    ...[Deno.execPath(), "run", "--quiet", "--no-prompt", V8_FLAGS],
    ...permissionsOf(name),
    ...[`--config=${ROOT}deno.json`, `${ROOT}main.ts`, name],
  ];
}

for (
  const [ofServer, ofAgent] of [
    ["platform", "platform"],
    ["platform", "openssl"],
    ["openssl", "platform"],
    ["openssl", "openssl"],
  ] as const
) {
  Deno.test({
    name: `a server that speaks TLS by "${ofServer}", an agent by "${ofAgent}"`,
    ignore: openLibssl() === undefined,
    fn: async () => {
      const workspace = await Workspace.make();
      const server = await startServer(workspace, {
        maker: "ours",
        mode: "auto",
        transport: "uds",
        program: command("server", ofServer),
        extraFlags: ["--v=4"],
      });
      const { frontend } = server;
      if (frontend.transport !== "uds") throw new TypeError("Expected a path");
      const agent = await startAgent(workspace, server.agentPort, ofAgent);
      using target = Deno.listen({ hostname: "127.0.0.1", port: 0 });
      const echoed = echoOne(target);
      const octets = new Uint8Array(new Prng(7).octets(3_000_000));
      const answer = await dial([
        `127.0.0.1:${(target.addr as Deno.NetAddr).port}`,
        `--server=unix:${frontend.path}`,
      ], octets);
      await echoed;
      assertEquals(answer.length, octets.length);
      assertEquals(answer.every((octet, at) => octet === octets[at]), true);
      await agent.stop("SIGKILL");
      await server.child.stop("SIGKILL");
      for (
        const [choice, { logFile }] of [
          [ofServer, server.child],
          [ofAgent, agent],
        ] as const
      ) {
        assertStringIncludes(await Deno.readTextFile(logFile), WORDS[choice]);
      }
      await workspace.remove();
    },
  });
}

async function startAgent(
  workspace: Workspace,
  serverPort: number,
  choice: TlsChoice,
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
  flags: readonly string[],
  octets: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array> {
  const [program, ...words] = command("dial", "platform");
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
