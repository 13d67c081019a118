/**
 * Our gRPC layer against grpc-go and grpc-js (under Node), in both roles, over
 * plain TCP. grpcurl asks the server's own ports, in `../grpcurl.ts`.
 *
 * Usage: `deno task lab grpc`
 *
 * Builds and installs the peers into `.cache/grpc-interop`. What needs Go or
 * Node is skipped, with the reason, on machines without it. Ends with
 * `N passed, N failed, N skipped`.
 *
 * @module
 */

import {
  Child,
  endChildrenOnSignals,
  killAllChildren,
} from "../../../tests/support/program/child.ts";
import { PeerMissingError } from "../../../tests/support/program/peers.ts";
import { Tally } from "../../../tests/support/watch/tally.ts";
import { CLIENT_CASES } from "./client_cases.ts";
import { OurClient } from "./our_client.ts";
import { within } from "../case_runner.ts";

/** Where programs, packages and logs go. */
const CACHE: string =
  new URL("../../../.cache/grpc-interop", import.meta.url).pathname;

const HERE = new URL(".", import.meta.url).pathname;

/** Commands that serve and call the test service. */
interface GrpcPeer {
  readonly name: string;
  /** Prints `listening PORT`. */
  readonly server: readonly string[];
  /** Prints `PASS name` or `FAIL name: why` per case. */
  client(address: string): readonly string[];
}

/**
 * Builds the grpc-go program. Go's own cache makes that quick the second time.
 *
 * @throws {PeerMissingError} Without Go.
 */
async function buildGoPeer(): Promise<GrpcPeer> {
  const program = `${CACHE}/go-peer`;
  const flags = ["-p", "2", "-mod=readonly", "-trimpath", "-o", program];
  await run("go", ["build", ...flags, "."], `${HERE}go`);
  return {
    name: "grpc-go",
    server: [program, "serve"],
    client: (address) => [program, "client", address],
  };
}

/**
 * Installs grpc-js beside a copy of the programs that use it, unless that was
 * done for the same lock file before.
 *
 * @throws {PeerMissingError} Without Node or npm.
 */
async function buildNodePeer(): Promise<GrpcPeer> {
  const folder = `${CACHE}/node`;
  await Deno.mkdir(folder, { recursive: true });
  const lock = await Deno.readTextFile(`${HERE}node/package-lock.json`);
  const isInstalled = await readIfThere(`${folder}/installed`) === lock;
  for await (const { name } of Deno.readDir(`${HERE}node`)) {
    await Deno.copyFile(`${HERE}node/${name}`, `${folder}/${name}`);
  }
  await run("node", ["--version"], folder);
  if (!isInstalled) {
    const quiet = ["--no-audit", "--no-fund", "--ignore-scripts"];
    await run("npm", ["ci", ...quiet], folder);
    await Deno.writeTextFile(`${folder}/installed`, lock);
  }
  return {
    name: "grpc-js",
    server: ["node", `${folder}/server.js`],
    client: (address) => ["node", `${folder}/client.js`, address],
  };
}

async function run(
  program: string,
  args: readonly string[],
  cwd: string,
): Promise<void> {
  let output: Deno.CommandOutput;
  try {
    output = await new Deno.Command(program, { args: [...args], cwd }).output();
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    throw new PeerMissingError(`Cannot run ${program}: it is not installed`);
  }
  if (output.success) return;
  const said = new TextDecoder().decode(output.stderr).trim();
  throw new Error(`Cannot run ${program} ${args.join(" ")}: ${said}`);
}

async function readIfThere(path: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return "";
    throw error;
  }
}

const CASE_TIMEOUT_MS = 30_000;
const CLIENT_TIMEOUT_MS = 180_000;

const tally = new Tally();

/** Starts a server that prints `listening PORT`. */
async function startServer(
  name: string,
  command: readonly string[],
): Promise<{ child: Child; port: number }> {
  const logFile = `${CACHE}/${name}.log`;
  await Deno.writeTextFile(logFile, "");
  const child = new Child({ name, command, logFile });
  const [, port] = await child.untilPrinted(/listening (\d+)/);
  return { child, port: Number(port) };
}

async function startOurServer(): Promise<{ child: Child; port: number }> {
  const program = new URL("our_server.ts", import.meta.url).pathname;
  return await startServer("our-server", [
    Deno.execPath(),
    "run",
    "--quiet",
    "--allow-net",
    program,
  ]);
}

/** Runs a peer's client against our server and takes over its lines. */
async function runPeerClient(peer: GrpcPeer, port: number): Promise<void> {
  const who = `${peer.name} client, our server`;
  const [program, ...args] = peer.client(`127.0.0.1:${port}`);
  const { stdout, stderr, code } = await new Deno.Command(program!, {
    args,
    signal: AbortSignal.timeout(CLIENT_TIMEOUT_MS),
  }).output();
  const lines = new TextDecoder().decode(stdout).split("\n");
  for (const line of lines) {
    const said = line.slice(5);
    if (line.startsWith("PASS ")) tally.pass(`${who}: ${said}`);
    if (line.startsWith("FAIL ")) tally.fail(who, said);
  }
  // The last case shows that it got to the end.
  if (code === 0 && !lines.some((line) => /^PASS goaway/.test(line))) {
    tally.fail(who, "it ended before its last case");
  }
  if (code !== 0) {
    const said = new TextDecoder().decode(stderr);
    tally.fail(who, `exit ${code}: ${said}`);
  }
}

async function runOurClient(peer: GrpcPeer): Promise<void> {
  const { child, port } = await startServer(`${peer.name}-server`, peer.server);
  const client = await OurClient.connect(port);
  for (const [name, run] of Object.entries(CLIENT_CASES)) {
    await tally.run(
      `our client, ${peer.name} server: ${name}`,
      () => within(CASE_TIMEOUT_MS, run(client)),
    );
  }
  client.connection.abort(0, "the test is over");
  await child.stop("SIGKILL");
}

/** Runs `work`; a missing tool skips it. */
async function unlessMissing(
  name: string,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof PeerMissingError) tally.skip(name, error.message);
    else tally.fail(name, error);
  }
}

await Deno.mkdir(CACHE, { recursive: true });
endChildrenOnSignals(() => Promise.resolve());
for (
  const [name, build] of [
    ["grpc-go", buildGoPeer],
    ["grpc-js", buildNodePeer],
  ] as const
) {
  await unlessMissing(name, async () => {
    const peer = await build();
    const { child, port } = await startOurServer();
    await runPeerClient(peer, port);
    if (child.hasEnded) tally.fail("our server", await child.logTail());
    await child.stop();
    await runOurClient(peer);
  });
}
await killAllChildren();
Deno.exit(tally.end());
