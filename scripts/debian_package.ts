/**
 * The `.deb` of a release: the runtime and the modules lie unpacked below
 * `/usr/lib/tunnel`, so that a start writes nothing. `dpkg-deb` packs it.
 *
 * @module
 */

import { VERSION } from "../platform/process/version.ts";
import { completionScripts, manPages } from "./man_pages.ts";
import { gzipped, run, writeAt } from "./release_files.ts";

/** Where the runtime and the program lie. */
export const INSTALLED_AT = "/usr/lib/tunnel";

/** What Debian calls processors. */
const ARCHITECTURES = { x64: "amd64", arm64: "arm64" } as const;

/** Where each shell of Debian looks for them. */
const COMPLETIONS: ReadonlyMap<string, string> = new Map([
  ["tunnel.bash", "bash-completion/completions/tunnel"],
  ["_tunnel", "zsh/vendor-completions/_tunnel"],
  ["tunnel.fish", "fish/vendor_completions.d/tunnel.fish"],
]);

const SCRIPTS = ["postinst", "prerm", "postrm"];

/** What goes into it. */
export interface DebianParts {
  readonly architecture: keyof typeof ARCHITECTURES;
  /** `/usr/bin/tunnel`. */
  readonly launcher: string;
  readonly runtime: { readonly name: string; readonly bytes: Uint8Array };
  readonly program: {
    readonly name: string;
    readonly modules: ReadonlyMap<string, string>;
  };
  /** A bill of materials. */
  readonly sbom: string;
}

/**
 * Packs it in `staging`, which is not there yet.
 *
 * @returns Its path, in `directory`.
 * @throws {Error} The words of `dpkg-deb`, or that there is none.
 */
export async function debianPackage(
  parts: DebianParts,
  staging: string,
  directory: string,
): Promise<string> {
  const { architecture, launcher, runtime, program, sbom } = parts;
  const put = (path: string, content: string | Uint8Array, mode = 0o644) =>
    writeAt(`${staging}${path}`, content, mode);
  await put("/usr/bin/tunnel", launcher, 0o755);
  await put(`${INSTALLED_AT}/${runtime.name}`, runtime.bytes, 0o755);
  for (const [name, text] of program.modules) {
    await put(`${INSTALLED_AT}/${program.name}/${name}`, text);
  }
  for (const [name, text] of await manPages()) {
    await put(`/usr/share/man/man1/${name}.gz`, await gzipped(text));
  }
  for (const [name, text] of await completionScripts()) {
    await put(`/usr/share/${COMPLETIONS.get(name)}`, text);
  }
  for (const { name } of Deno.readDirSync("deploy/systemd")) {
    const text = await Deno.readTextFile(`deploy/systemd/${name}`);
    const folder = name.endsWith(".conf") ? "sysusers.d" : "systemd/system";
    await put(`/usr/lib/${folder}/${name}`, text);
  }
  const about = "/usr/share/doc/tunnel";
  await put(`${about}/copyright`, await Deno.readTextFile("LICENSE"));
  const changes = await Deno.readTextFile("CHANGELOG.md");
  await put(`${about}/changelog.gz`, await gzipped(changes));
  await put(`${about}/tunnel.spdx.json`, sbom);
  for (const name of SCRIPTS) {
    const script = await Deno.readTextFile(`deploy/debian/${name}`);
    await put(`/DEBIAN/${name}`, script, 0o755);
  }
  const debian = ARCHITECTURES[architecture];
  const control = (await Deno.readTextFile("deploy/debian/control"))
    .replace("VERSION", VERSION)
    .replace("ARCHITECTURE", debian)
    .replace("SIZE", String(Math.ceil(runtime.bytes.length / 1024)));
  await put("/DEBIAN/control", control);
  const path = `${directory}/tunnel_${VERSION}_${debian}.deb`;
  // Its own level, 9, takes three times as long for a hundredth less.
  await run([
    ...["dpkg-deb", "--root-owner-group", "-Zgzip", "-z5", "--build"],
    ...[staging, path],
  ]);
  return path;
}
