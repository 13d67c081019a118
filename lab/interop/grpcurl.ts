/**
 * grpcurl, with our own `.proto` files, against the gRPC frontend of our server
 * and of Konnectivity's: what our files say is what both speak.
 *
 * Usage: `deno task lab grpcurl [--ours=server,agent]`, with `--ours=` for
 * Konnectivity alone. Ends with `N passed, N failed, N skipped`.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import { killAllChildren } from "../../tests/support/program/child.ts";
import { findPeer } from "../../tests/support/program/peers.ts";
import {
  type Frontend,
  type Maker,
  startAgent,
  startServer,
  stopTunnel,
} from "../../tests/support/program/tunnel.ts";
import { Workspace } from "../../tests/support/program/workspace.ts";
import { startTarget, type Target } from "./target.ts";
import { Tally } from "../../tests/support/watch/tally.ts";
import { patience } from "../../tests/support/watch/patience.ts";
import { counted } from "./case_runner.ts";

const PROTO = new URL("../../proto", import.meta.url).pathname;

/** Beyond 2^53: what a JavaScript number would round. */
const RANDOM = "9007199254740993";

/**
 * Standard input stays open this long behind the request. Its end closes the
 * stream, and a Go server takes that as the end of everything.
 */
const INPUT_OPEN_MS = 500;

/** The same call through one frontend, whatever its transport. */
interface Caller {
  call(proto: string, method: string, request: unknown): Promise<string>;
}

function callerOf(
  program: string,
  workspace: Workspace,
  frontend: Frontend,
): Caller {
  const { ca, client } = workspace.certificates;
  const route = frontend.transport === "uds"
    ? ["-plaintext", "-unix", frontend.path]
    : [
      ...["-cacert", ca, "-cert", client.cert, "-key", client.key],
      `${frontend.host}:${frontend.port}`,
    ];
  return {
    async call(proto, method, request) {
      const [folder, file] = proto.startsWith("/")
        ? [proto.slice(0, proto.lastIndexOf("/")), proto.split("/").at(-1)!]
        : [PROTO, proto];
      const child = new Deno.Command(program, {
        args: [
          ...["-max-time", `${patience(10)}`, "-d", "@"],
          ...["-import-path", folder, "-proto", file, ...route, method],
        ],
        stdin: "piped",
        stdout: "piped",
        stderr: "piped",
      }).spawn();
      const writer = child.stdin.getWriter();
      await writer.write(new TextEncoder().encode(JSON.stringify(request)));
      const timer = setTimeout(
        // It may have ended with an error before.
        () => writer.close().catch(() => {}),
        patience(INPUT_OPEN_MS),
      );
      const { stdout, stderr } = await child.output();
      clearTimeout(timer);
      const decoder = new TextDecoder();
      return decoder.decode(stdout) + decoder.decode(stderr);
    },
  };
}

function dialRequest(address: string): unknown {
  const dial = { protocol: "tcp", address, random: RANDOM };
  return { type: "DIAL_REQ", dialRequest: dial };
}

function mustMatch(answer: string, ...patterns: readonly RegExp[]): void {
  for (const pattern of patterns) {
    if (!pattern.test(answer)) {
      throw new Error(`wanted ${pattern}, the answer was ${answer || "empty"}`);
    }
  }
}

/** What is asked, and what is in the answer. */
type Case = readonly [
  what: string,
  proto: string,
  method: string,
  request: unknown,
  ...patterns: RegExp[],
];

async function runCases(
  name: string,
  maker: Maker,
  caller: Caller,
  workspace: Workspace,
  target: Target,
  tally: Tally,
): Promise<void> {
  const unknown = workspace.path("unknown.proto");
  await Deno.writeTextFile(
    unknown,
    'syntax = "proto3"; message Nothing {} ' +
      "service ProxyService { rpc Unknown(Nothing) returns (Nothing); }",
  );
  const random = new RegExp(`"random": "${RANDOM}"`);
  const proxy = ["konnectivity.proto", "ProxyService/Proxy"] as const;
  const health = ["health.proto", "grpc.health.v1.Health/Check"] as const;
  const echo = dialRequest(`127.0.0.1:${target.echoPort}`);
  const refused = dialRequest("127.0.0.1:1");
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly Case[] = [
    ["a dial is answered", ...proxy, echo, /"connectID": "[1-9]\d*"/, random],
    ["a refused dial says why", ...proxy, refused, /connection refused/, random],
    ["an unknown method is UNIMPLEMENTED", unknown, "ProxyService/Unknown", {}, /Code: Unimplemented/],
    // Konnectivity has no health service.
    ...maker === "konnectivity" ? [] : [
      ["health is SERVING", ...health, {}, /"status": "SERVING"/],
      ["health of an unknown service", ...health, { service: "nobody" }, /Code: NotFound/],
    ] as const,
  ];
  for (const [what, proto, method, request, ...patterns] of cases) {
    await tally.run(`${name}: ${what}`, async () => {
      mustMatch(await caller.call(proto, method, request), ...patterns);
    });
  }
}

async function main(): Promise<number> {
  const flags = parseArgs(Deno.args, { string: ["ours"] });
  const ours = String(flags.ours ?? "server,agent").split(",");
  return await counted("grpcurl starts", async (tally, workspace) => {
    const target = startTarget();
    const program = await findPeer("grpcurl");
    const makers: Maker[] = ["konnectivity"];
    if (ours.includes("server")) makers.unshift("ours");
    for (const maker of makers) {
      for (const transport of ["uds", "tcp"] as const) {
        const name = `grpcurl, ${maker} server, ${transport}`;
        try {
          const options = { maker, mode: "grpc", transport } as const;
          const server = await startServer(workspace, options);
          const agentMaker = ours.includes("agent") ? maker : "konnectivity";
          const agent = await startAgent(workspace, server, agentMaker);
          const caller = callerOf(program, workspace, server.frontend);
          await runCases(name, maker, caller, workspace, target, tally);
          await stopTunnel(server, agent);
        } catch (error) {
          tally.fail(name, error);
          await killAllChildren();
        }
      }
    }
    await target.close();
  });
}

if (import.meta.main) Deno.exit(await main());
