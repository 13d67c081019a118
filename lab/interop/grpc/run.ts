/**
 * Our gRPC layer against grpc-go and grpc-js (under Node), in both roles, over
 * plain TCP. grpcurl asks the server's own ports, in `../grpcurl.ts`.
 *
 * Usage: `deno task lab grpc`
 *
 * What needs Go or Node is skipped, with the reason, on machines without it.
 * Ends with `N passed, N failed, N skipped`.
 *
 * @module
 */

import { Child } from "../../../tests/support/program/child.ts";
import { PeerMissingError } from "../../../tests/support/program/missing.ts";
import { findGrpcJs } from "../../../tests/support/program/peer_packages.ts";
import { findPeer } from "../../../tests/support/program/peers.ts";
import { runToEnd } from "../../../tests/support/program/run.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import type { Tally } from "../../../tests/support/watch/tally.ts";
import { counted, within } from "../case_runner.ts";
import { CLIENT_CASES } from "./client_cases.ts";
import { OurClient } from "./our_client.ts";

const HERE = new URL(".", import.meta.url).pathname;

const CASE_TIMEOUT_MS = 30_000;
const CLIENT_TIMEOUT_MS = 180_000;

/** Commands that serve and call the test service. */
interface GrpcPeer {
  readonly env?: Readonly<Record<string, string>>;
  /** Prints `listening PORT`. */
  readonly server: readonly string[];
  /** Given an address, prints `PASS name` or `FAIL name: why` per case. */
  readonly client: readonly string[];
}

const PEERS: Readonly<Record<string, () => Promise<GrpcPeer>>> = {
  "grpc-go": async () => {
    const program = await findPeer("grpc-interop");
    return { server: [program, "serve"], client: [program, "client"] };
  },
  "grpc-js": async () => ({
    env: { NODE_PATH: `${await findGrpcJs()}/node_modules` },
    server: ["node", `${HERE}node/server.js`],
    client: ["node", `${HERE}node/client.js`],
  }),
};

/** Starts a server that prints `listening PORT`. */
async function startServer(
  workspace: Workspace,
  name: string,
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ child: Child; port: number }> {
  const logFile = workspace.path(`${name}.log`);
  const child = new Child({ name, command, logFile, env });
  const [, port] = await child.untilPrinted(/listening (\d+)/);
  return { child, port: Number(port) };
}

/** Runs a peer's client against our server and takes over its lines. */
async function runPeerClient(
  tally: Tally,
  who: string,
  { client, env = {} }: GrpcPeer,
  port: number,
): Promise<void> {
  const { stdout, stderr, code } = await runToEnd(
    [...client, `127.0.0.1:${port}`],
    { env, signal: AbortSignal.timeout(CLIENT_TIMEOUT_MS) },
  );
  const lines = stdout.split("\n");
  for (const line of lines) {
    const said = line.slice(5);
    if (line.startsWith("PASS ")) tally.pass(`${who}: ${said}`);
    if (line.startsWith("FAIL ")) tally.fail(who, said);
  }
  // The last case shows that it got to the end.
  if (code === 0 && !lines.some((line) => /^PASS goaway/.test(line))) {
    tally.fail(who, "it ended before its last case");
  }
  if (code !== 0) tally.fail(who, `exit ${code}: ${stderr}`);
}

async function runBoth(
  tally: Tally,
  workspace: Workspace,
  name: string,
  peer: GrpcPeer,
): Promise<void> {
  const ours = await startServer(workspace, "our-server", [
    ...[Deno.execPath(), "run", "--quiet", "--allow-net"],
    new URL("our_server.ts", import.meta.url).pathname,
  ]);
  await runPeerClient(tally, `${name} client, our server`, peer, ours.port);
  if (ours.child.hasEnded) tally.fail("our server", await ours.child.logTail());
  await ours.child.stop();
  const { server, env } = peer;
  const theirs = await startServer(workspace, `${name}-server`, server, env);
  const client = await OurClient.connect(theirs.port);
  for (const [sentence, run] of Object.entries(CLIENT_CASES)) {
    await tally.run(
      `our client, ${name} server: ${sentence}`,
      () => within(CASE_TIMEOUT_MS, run(client)),
    );
  }
  client.connection.abort(0, "the test is over");
  await theirs.child.stop("SIGKILL");
}

Deno.exit(
  await counted("gRPC is spoken", async (tally, workspace) => {
    for (const [name, find] of Object.entries(PEERS)) {
      try {
        await runBoth(tally, workspace, name, await find());
      } catch (error) {
        if (error instanceof PeerMissingError) tally.skip(name, error.message);
        else tally.fail(name, error);
      }
    }
  }),
);
