/**
 * `TUNNEL_TLS` and `TUNNEL_SOCKETS`, the ways back to another TLS and to other
 * sockets: with each of them, and with no more than the packaged program may do,
 * a tunnel of three processes carries bytes, and its logs say what it uses.
 *
 * @module
 */

import { runToEnd } from "../support/program/run.ts";
import { TunnelProcesses } from "../support/rigs/tunnel_processes.ts";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { openLibssl } from "../../net/tls/openssl/library.ts";
import { SOCKETS, TLS, type TlsChoice } from "../../net/libc/choices.ts";
import { WAKEUPS } from "../support/memory/socket_kinds.ts";
import { ourCommand } from "../support/program/tunnel.ts";

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

/** Carries bytes there and back; fails if they are others, or if anybody complains. */
async function carryWith(
  variable: string,
  choices: Choices,
): Promise<TunnelLogs> {
  const choose = (name: keyof Choices) => [
    ...["env", `${variable}=${choices[name]}`],
  ];
  await using tunnel = await TunnelProcesses.start({
    serverProgram: choose("server"),
    serverFlags: ["--v=4"],
    agentProgram: choose("agent"),
    agentFlags: ["--v=4"],
  });
  const address = `127.0.0.1:${tunnel.echo()}`;
  const dial = ourCommand("dial", address, `--server=unix:${tunnel.socket}`);
  const { stdout, stderr } = await runToEnd(
    [...choose("dial"), ...dial],
    { input: TEXT },
  );
  assertEquals(stderr, "");
  assertEquals(stdout === TEXT, true, `${stdout.length} came back`);
  return {
    server: await Deno.readTextFile(tunnel.server.child.logFile),
    agent: await Deno.readTextFile(tunnel.agent.child.logFile),
  };
}

/** No two parts of it are the same. */
const TEXT = Array.from({ length: 400_000 }, (_, index) => `${index} `)
  .join("");

const SOCKET_WORDS: Readonly<Record<string, string>> = {
  platform: "Local sockets are the platform's: $TUNNEL_SOCKETS says so",
  thread:
    "Local sockets are the C library's: a thread waits for them, as $TUNNEL_SOCKETS says",
  ring: "Local sockets are the C library's: io_uring wakes the program",
};

for (const choice of SOCKETS.words) {
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

for (const server of TLS.words) {
  for (const agent of TLS.words) {
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
