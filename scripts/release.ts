// deno-lint-ignore-file no-console -- a command that says what it does.
/**
 * Makes the files of a release, byte for byte the same from the same sources:
 * the program in one file, an archive and a `.deb` for each processor, the bill
 * of materials, what changed, and the sums of all.
 *
 * Usage: `deno task release [--arch x64,arm64] [--out dist]`. Needs npm, tar,
 * gzip and dpkg-deb.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import { ProgressLine } from "../cli/program/progress.ts";
import { VERSION } from "../platform/process/version.ts";
import type { Modules } from "./bundle.ts";
import { debianPackage, INSTALLED_AT } from "./debian_package.ts";
import { writeReference } from "./man_pages.ts";
import {
  bundle,
  carriedProgram,
  carriedRuntime,
  gunzip,
  packageFor,
  scriptFor,
} from "./package.ts";
import { run, sourceTime, writeAt } from "./release_files.ts";
import type { Architecture } from "./runtime_pins.ts";
import { sbomOf } from "./sbom.ts";

/** What lies beside the program in an archive. */
const PAGES = ["README.md", "CHANGELOG.md", "LICENSE"];

/** For a moment, relative to the project. */
const STAGING = `.cache/release-${Deno.pid}`;

/** All files for one processor; gives their paths. */
async function release(
  architecture: Architecture,
  modules: Modules,
  out: string,
  seconds: number,
): Promise<string[]> {
  const runtime = await carriedRuntime(architecture);
  const program = await carriedProgram(modules);
  const sbom = await sbomOf(architecture, modules, seconds);
  const file = await packageFor(architecture, modules, out, runtime);
  const materials = `${file}.spdx.json`;
  await Deno.writeTextFile(materials, sbom);
  const debian = await debianPackage(
    {
      architecture,
      launcher: await scriptFor(architecture, runtime, program, INSTALLED_AT),
      runtime: {
        name: `runtime-${runtime.hash}/tunnel`,
        bytes: await gunzip(runtime.compressed),
      },
      program: { name: `tunnel-${program.hash}`, modules },
      sbom,
    },
    `${STAGING}/deb-${architecture}`,
    out,
  );
  return [file, await archiveOf(file, materials), debian, materials];
}

/** The program with its manual pages, completions and units. */
async function archiveOf(file: string, materials: string): Promise<string> {
  const name = file.slice(file.lastIndexOf("/") + 1);
  const folder = `${STAGING}/${name}`;
  await writeAt(`${folder}/tunnel`, await Deno.readFile(file), 0o755);
  await writeReference(folder);
  const units = [...Deno.readDirSync("deploy/systemd")]
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
  // The program is compressed already.
  await run(["gzip", "--no-name", "--fast", "--force", archive]);
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

function architectures(given: string): Architecture[] {
  return given.split(",").map((name) => {
    if (name === "x64" || name === "arm64") return name;
    throw new Error(`Cannot package for ${name}: wanted x64 or arm64`);
  });
}

async function main(): Promise<void> {
  const { arch = "x64,arm64", out = "dist" } = parseArgs(Deno.args, {
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
  for (const architecture of architectures(String(arch))) {
    line.show(`packing ${architecture}: the runtime is fetched and compressed`);
    files.push(...await release(architecture, modules, directory, seconds));
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
