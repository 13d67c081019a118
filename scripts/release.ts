// deno-lint-ignore-file no-console -- a command that says what it does.
/**
 * Makes the files of a release, byte for byte the same from the same sources:
 * the program in one file and an archive for each platform (Windows has a zip
 * alone, Linux a `.deb`, too), bills of materials, what changed, and all sums.
 *
 * Usage: `deno task release [--arch x64,macos-arm64,…] [--out dist]`. Needs npm,
 * tar and dpkg-deb.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import { gzipSync } from "node:zlib";
import { allCommands } from "../cli/commands.ts";
import { ProgressLine } from "../cli/program/progress.ts";
import { VERSION } from "../platform/process/version.ts";
import type { Modules } from "./bundle.ts";
import { debianPackage, INSTALLED_AT } from "./debian_package.ts";
import { writeReference } from "./man_pages.ts";
import {
  bundle,
  type Carried,
  carriedProgram,
  carry,
  packageFor,
  runtimeOf,
  scriptFor,
  type ShellPlatform,
} from "./package.ts";
import { run, sourceTime, writeAt } from "./release_files.ts";
import {
  type Architecture,
  type Platform,
  RUNTIME_PINS,
} from "./runtime_pins.ts";
import { sbomOf } from "./sbom.ts";
import { windowsScript } from "./windows_script.ts";
import { zipOf } from "./zip_file.ts";

/** What lies beside the program in an archive. */
const PAGES = ["README.md", "CHANGELOG.md", "LICENSE"];

/** For a moment, relative to the project. */
const STAGING = `.cache/release-${Deno.pid}`;

/** All files for one platform; gives their paths. */
async function release(
  platform: Platform,
  modules: Modules,
  out: string,
  seconds: number,
): Promise<string[]> {
  const sbom = await sbomOf(platform, modules, seconds);
  const name = `${out}/tunnel-${VERSION}-${RUNTIME_PINS[platform].label}`;
  const materials = `${name}.spdx.json`;
  await writeAt(materials, sbom, 0o644);
  const files = platform === "windows-x64"
    ? [await windowsZip(`${name}.zip`, modules, sbom)]
    : await shellFiles(platform, modules, out, materials);
  return [...files, materials];
}

/** What needs a shell. */
async function shellFiles(
  platform: ShellPlatform,
  modules: Modules,
  out: string,
  materials: string,
): Promise<string[]> {
  const bytes = await runtimeOf(platform);
  const runtime = await carry(bytes);
  const file = await packageFor(platform, modules, out, runtime);
  const isLinux = platform === "x64" || platform === "arm64";
  const files = [file, await archiveOf(file, materials, isLinux)];
  if (!isLinux) return files;
  const sbom = await Deno.readTextFile(materials);
  return [
    ...files,
    await debianOf(platform, modules, out, { runtime, bytes }, sbom),
  ];
}

async function debianOf(
  architecture: Architecture,
  modules: Modules,
  out: string,
  { runtime, bytes }: { runtime: Carried; bytes: Uint8Array },
  sbom: string,
): Promise<string> {
  const program = await carriedProgram(modules);
  return await debianPackage(
    {
      architecture,
      launcher: await scriptFor(architecture, runtime, program, INSTALLED_AT),
      runtime: { name: `runtime-${runtime.hash}/tunnel`, bytes },
      program: { name: `tunnel-${program.hash}`, modules },
      sbom,
    },
    `${STAGING}/deb-${architecture}`,
    out,
  );
}

/** Nothing unpacks itself there: it runs where the archive was unpacked. */
async function windowsZip(
  path: string,
  modules: Modules,
  sbom: string,
): Promise<string> {
  const encoder = new TextEncoder();
  const files = new Map<string, Uint8Array<ArrayBuffer>>();
  files.set("tunnel.cmd", encoder.encode(windowsScript(await allCommands())));
  for (const page of PAGES) files.set(page, await Deno.readFile(page));
  files.set("tunnel.spdx.json", encoder.encode(sbom));
  for (const [name, text] of modules) {
    files.set(`program/${name}`, encoder.encode(text));
  }
  files.set("deno.exe", await runtimeOf("windows-x64"));
  const folder = path.slice(path.lastIndexOf("/") + 1, -".zip".length);
  await Deno.writeFile(path, await zipOf(folder, files));
  return path;
}

/** The program with its manual pages, completions and units. */
async function archiveOf(
  file: string,
  materials: string,
  hasUnits: boolean,
): Promise<string> {
  const name = file.slice(file.lastIndexOf("/") + 1);
  const folder = `${STAGING}/${name}`;
  await writeAt(`${folder}/tunnel`, await Deno.readFile(file), 0o755);
  await writeReference(folder);
  const units = (hasUnits ? [...Deno.readDirSync("deploy/systemd")] : [])
    .map(({ name }) => [`deploy/systemd/${name}`, `systemd/${name}`] as const);
  const pages = PAGES.map((page) => [page, page] as const);
  const files = [...units, ...pages, [materials, "tunnel.spdx.json"] as const];
  for (const [from, to] of files) {
    await writeAt(`${folder}/${to}`, await Deno.readFile(from), 0o644);
  }
  const archive = `${file}.tar`;
  await run([
    ...["tar", "--create", "--sort=name", "--owner=0", "--group=0"],
    ...["--numeric-owner", "--mode=u+rwX,go+rX,go-w", "--format=ustar"],
    ...[`--mtime=@${Deno.env.get("SOURCE_DATE_EPOCH")}`],
    ...[`--directory=${STAGING}`, `--file=${archive}`, name],
  ]);
  // The program, which is nearly all of it, is compressed already.
  const packed = gzipSync(await Deno.readFile(archive), { level: 0 });
  await Deno.writeFile(`${archive}.gz`, packed);
  await Deno.remove(archive);
  return `${archive}.gz`;
}

/** What the changelog says of a version. */
export function changesOf(version: string, changelog: string): string {
  const sections = changelog.split(/^(?=## )/m);
  const found = sections.find((section) =>
    section.startsWith(`## ${version} `) ||
    section.startsWith(`## ${version}\n`)
  );
  if (found !== undefined) return found;
  throw new Error(`CHANGELOG.md has nothing on ${version}`);
}

async function sumsOf(paths: readonly string[]): Promise<string> {
  const lines = paths.map(async (path) => {
    const digest = await crypto.subtle.digest(
      "SHA-256",
      await Deno.readFile(path),
    );
    const name = path.slice(path.lastIndexOf("/") + 1);
    return `${new Uint8Array(digest).toHex()}  ${name}\n`;
  });
  return (await Promise.all(lines)).join("");
}

const PLATFORMS = Object.keys(RUNTIME_PINS) as Platform[];

function platforms(given: string): Platform[] {
  return given.split(",").map((name) => {
    const found = PLATFORMS.find((one) => one === name);
    if (found !== undefined) return found;
    throw new Error(`Cannot package for ${name}: wanted ${PLATFORMS.join()}`);
  });
}

async function main(): Promise<void> {
  const { arch = PLATFORMS.join(), out = "dist" } = parseArgs(Deno.args, {
    string: ["arch", "out"],
  });
  const directory = String(out);
  const seconds = await sourceTime();
  // Of dpkg-deb, which clamps times to it.
  Deno.env.set("SOURCE_DATE_EPOCH", String(seconds));
  const line = new ProgressLine();
  line.show("bundling the program");
  const modules = await bundle();
  const files: string[] = [];
  for (const platform of platforms(String(arch))) {
    line.show(`packing ${platform}: the runtime is fetched and compressed`);
    files.push(...await release(platform, modules, directory, seconds));
  }
  const changes = `${directory}/tunnel-${VERSION}-changes.md`;
  const changelog = await Deno.readTextFile("CHANGELOG.md");
  await Deno.writeTextFile(changes, changesOf(VERSION, changelog));
  files.push(changes);
  const sums = `${directory}/SHA256SUMS`;
  await Deno.writeTextFile(sums, await sumsOf(files.sort()));
  await writeReference(directory);
  line.clear();
  for (const path of [...files, sums]) {
    const { size } = await Deno.stat(path);
    console.log(`${path} (${(size / 1e6).toFixed(1)} MB)`);
  }
}

if (import.meta.main) {
  try {
    await main();
  } finally {
    await Deno.remove(STAGING, { recursive: true }).catch(() => {});
  }
}
