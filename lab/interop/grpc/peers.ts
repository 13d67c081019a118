/**
 * The gRPC implementations we test against, made ready to start.
 *
 * @module
 */

import { PeerMissingError } from "../../../tests/support/program/peers.ts";

/** Where programs, packages and logs go. */
export const CACHE: string =
  new URL("../../../.cache/grpc-interop", import.meta.url).pathname;

const HERE = new URL(".", import.meta.url).pathname;

/** Commands that serve and call the test service. */
export interface GrpcPeer {
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
export async function buildGoPeer(): Promise<GrpcPeer> {
  const program = `${CACHE}/go-peer`;
  await run("go", [
    "build",
    "-p",
    "2",
    "-mod=readonly",
    "-trimpath",
    "-o",
    program,
    ".",
  ], `${HERE}go`);
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
export async function buildNodePeer(): Promise<GrpcPeer> {
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
