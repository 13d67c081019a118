/**
 * The whole program in one file that needs nothing but a shell, gzip and glibc.
 *
 * @module
 */

import { toBytes } from "@std/streams";
import { allCommands } from "../cli/commands.ts";
import { V8_FLAGS } from "../cli/program/rights.ts";
import { VERSION } from "../platform/process/version.ts";
import { bundleProgram, ENTRY, type Modules, unpacking } from "./bundle.ts";
import {
  type CarriedFile,
  type CarriedProgram,
  launcherScript,
} from "./launcher.ts";
import { fetchPinned } from "./npm_registry.ts";
import {
  type Platform,
  RUNTIME_PINS,
  type RuntimePin,
} from "./runtime_pins.ts";
import { tarEntry } from "./tar_entry.ts";

/** As `uname -sm` says them. */
const MACHINES = {
  x64: "Linux x86_64",
  arm64: "Linux aarch64",
  "macos-x64": "Darwin x86_64",
  "macos-arm64": "Darwin arm64",
} as const satisfies Partial<Record<Platform, string>>;

/** Platforms that have a shell; Windows has none. */
export type ShellPlatform = keyof typeof MACHINES;

/** Relative to the project. Downloads stay here between runs. */
const CACHE = ".cache/packages";

/** Nothing may be fetched or asked for at run time: all is in the bundle. */
export const RUN_FLAGS: readonly string[] = [
  "--quiet",
  "--no-prompt",
  "--no-config",
  "--no-lock",
  "--no-remote",
  "--no-npm",
  "--cached-only",
  V8_FLAGS,
];

/** The pinned runtime, fetched, looked at and compressed. */
export async function carriedRuntime(platform: Platform): Promise<Carried> {
  return await carry(await runtimeOf(platform));
}

/** The pinned runtime itself. */
export async function runtimeOf(
  platform: Platform,
): Promise<Uint8Array<ArrayBuffer>> {
  const pinned = RUNTIME_PINS[platform];
  if (pinned.version !== Deno.version.deno) throw notPinned(pinned);
  const tarball = await fetchPinned(pinned, CACHE);
  return tarEntry(await gunzip(tarball), `package/${pinned.file}`);
}

/**
 * Packages for one platform; gives the file's path.
 *
 * @param given The runtime, for who has it already.
 */
export async function packageFor(
  platform: ShellPlatform,
  modules: Modules,
  directory: string,
  given?: Carried,
): Promise<string> {
  const runtime = given ?? await carriedRuntime(platform);
  const program = await carriedProgram(modules);
  const script = await scriptFor(platform, runtime, program);
  await Deno.mkdir(directory, { recursive: true });
  const path = `${directory}/tunnel-${VERSION}-${RUNTIME_PINS[platform].label}`;
  const whole = new Blob([script, runtime.compressed, program.compressed]);
  await Deno.writeFile(path, whole.stream());
  await Deno.chmod(path, 0o755);
  return path;
}

/** The modules, behind the code that puts them into a folder. */
export async function carriedProgram(
  modules: Modules,
): Promise<Carried & CarriedProgram> {
  const encoder = new TextEncoder();
  const [code, texts] = unpacking(modules);
  const program = await carry(encoder.encode(code + texts));
  const codeBytes = encoder.encode(code).length;
  const entryBytes = encoder.encode(modules.get(ENTRY)).length;
  return { ...program, codeBytes, entryBytes };
}

/** The script at the front of the file, or for what is `installed` already. */
export async function scriptFor(
  platform: ShellPlatform,
  runtime: CarriedFile,
  program: CarriedProgram,
  installed?: string,
): Promise<string> {
  const machine = MACHINES[platform];
  return launcherScript({
    version: VERSION,
    system: machine.startsWith("Linux") ? "linux" : "macos",
    machine,
    runtime,
    program,
    runFlags: RUN_FLAGS,
    commands: await allCommands(),
    ...(installed === undefined ? {} : { installed }),
  });
}

/** What is packaged is what was tested, which is what bundles it. */
function notPinned({ name, version }: RuntimePin): Error {
  return new Error(
    `Cannot package with Deno ${Deno.version.deno}: ${name} is pinned to ` +
      `${version}; run this with that, or change scripts/runtime_pins.ts`,
  );
}

/** The program with all it imports, ready to be packed. */
export function bundle(): Promise<Modules> {
  return bundleProgram(`${CACHE}/main-${Deno.pid}`);
}

/** A file as it lies in the package. */
export interface Carried extends CarriedFile {
  readonly compressed: Uint8Array<ArrayBuffer>;
}

/** As it will lie there: compressed, which takes seconds for a runtime. */
export async function carry(
  content: Uint8Array<ArrayBuffer>,
): Promise<Carried> {
  const digest = await crypto.subtle.digest("SHA-256", content);
  const compressed = await through(content, new CompressionStream("gzip"));
  return {
    hash: new Uint8Array(digest).toHex().slice(0, 16),
    bytes: content.length,
    compressedBytes: compressed.length,
    compressed,
  };
}

function gunzip(
  bytes: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer>> {
  return through(bytes, new DecompressionStream("gzip"));
}

async function through(
  bytes: Uint8Array<ArrayBuffer>,
  transform: CompressionStream | DecompressionStream,
): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(transform);
  return new Uint8Array(await toBytes(stream));
}
