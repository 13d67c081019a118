/**
 * `TUNNEL_TLS` and `TUNNEL_SOCKETS`, the ways back to another TLS and to other
 * sockets: with each of them, and with no more than the packaged program may do,
 * a tunnel of three processes carries bytes, and its logs say what it uses.
 *
 * @module
 */

import { assertEquals, assertStringIncludes } from "@std/assert";
import { openLibssl } from "../../net/tls/openssl/library.ts";
import {
  TLS_CHOICES,
  type TlsChoice,
} from "../../net/tls/openssl/tls_choice.ts";
import { SOCKET_CHOICES } from "../../net/poll/socket_choice.ts";
import { WAKEUPS } from "../support/memory/socket_kinds.ts";
import { Child } from "../support/program/child.ts";
import { freePort } from "../support/program/ports.ts";
import { ourCommand, startServer } from "../support/program/tunnel.ts";
import { Workspace } from "../support/program/workspace.ts";
import { Prng } from "../support/memory/prng.ts";

/** What the variable is for whom. */
interface Choices {
  readonly server: string;
  readonly agent: string;
  readonly dial: string;
}

/** What server and agent wrote, with `--v=4`. */
interface TunnelLogs {
  readonly server: string;
  readonly agent: string;
}

/** Carries 3 MB there and back; fails if they are others, or if anybody complains. */
async function carryWith(
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

const SOCKET_WORDS: Readonly<Record<string, string>> = {
  platform: "Local sockets are the platform's: $TUNNEL_SOCKETS says so",
  thread:
    "Local sockets are the C library's: a thread waits for them, as $TUNNEL_SOCKETS says",
  ring: "Local sockets are the C library's: io_uring wakes the program",
};

for (const choice of SOCKET_CHOICES) {
  Deno.test({
    name: `a tunnel over sockets of the kind "${choice}"`,
    ignore: choice !== "platform" && WAKEUPS[choice] === undefined,
    fn: async () => {
      const all = { server: choice, agent: choice, dial: choice };
      const logs = await carryWith("TUNNEL_SOCKETS", all);
      assertStringIncludes(logs.server, SOCKET_WORDS[choice]!);
      assertStringIncludes(logs.agent, SOCKET_WORDS[choice]!);
    },
  });
}

const TLS_WORDS: Readonly<Record<TlsChoice, string>> = {
  platform: "TLS is the platform's: $TUNNEL_TLS says so",
  openssl: "TLS is that of OpenSSL 3.",
};

for (const server of TLS_CHOICES) {
  for (const agent of TLS_CHOICES) {
    Deno.test({
      name: `a server that speaks TLS by "${server}", an agent by "${agent}"`,
      ignore: openLibssl() === undefined,
      fn: async () => {
        const choices = { server, agent, dial: "platform" };
        const logs = await carryWith("TUNNEL_TLS", choices);
        assertStringIncludes(logs.server, TLS_WORDS[server]);
        assertStringIncludes(logs.agent, TLS_WORDS[agent]);
      },
    });
  }
}
