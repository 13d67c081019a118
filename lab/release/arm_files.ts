/**
 * The files of a release for arm64, looked at on another processor: all three
 * have one runtime, which is the pinned one and is for that processor.
 *
 * @module
 */

import { assertEquals, assertMatch } from "@std/assert";
import { RUNTIME_PINS } from "../../scripts/runtime_pins.ts";
import { runToEnd } from "../../tests/support/program/run.ts";
import { said } from "./said.ts";

/** Of an ELF file: where its machine is said, and which one AArch64 is. */
const MACHINE_AT = 18;
const AARCH64 = 183;

/** What a shell writes to its standard output. */
async function bytesOf(
  script: string,
  ...words: readonly string[]
): Promise<Uint8Array<ArrayBuffer>> {
  const { code, bytes, stderr } = await runToEnd(
    ["sh", "-ec", script, "sh", ...words],
  );
  if (code === 0) return bytes;
  throw new Error(`${script}: ${stderr}`);
}

async function digest(
  algorithm: "SHA-256" | "SHA-512",
  bytes: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest(algorithm, bytes));
}

/** The runtime that the single file carries, by its own first lines. */
async function carriedIn(file: string): Promise<Uint8Array<ArrayBuffer>> {
  const head = new TextDecoder().decode(
    await bytesOf('head -c 20000 "$1"', file),
  );
  assertMatch(head, /\[ "\$\(uname -sm\)" = "Linux aarch64" \]/);
  const [, at, length] = /^unpack "\$folder\/runtime-\S+ (\d+) (\d+) /m
    .exec(head)!;
  return await bytesOf(
    'tail -c +"$2" "$1" | head -c "$3" | gzip -dc',
    ...[file, String(Number(at) + 1), length!],
  );
}

/** @param clone Whose release it is. */
export async function isForArm(clone: string): Promise<void> {
  const { name, version, integrity } = RUNTIME_PINS.arm64;
  const tarball = `${clone}/.cache/packages/${
    name.replace("/", "+")
  }-${version}.tgz`;
  const sum = await digest("SHA-512", await Deno.readFile(tarball));
  assertEquals(`sha512-${sum.toBase64()}`, integrity);
  const pinned = await bytesOf('tar -xOzf "$1" package/deno', tarball);
  assertEquals(
    new DataView(pinned.buffer).getUint16(MACHINE_AT, true),
    AARCH64,
  );
  const hash = (await digest("SHA-256", pinned)).toHex();

  const [{ name: deb }] = [...Deno.readDirSync(`${clone}/dist`)]
    .filter(({ name }) => /^tunnel_.*_arm64\.deb$/.test(name)) as [
      Deno.DirEntry,
    ];
  const path = `${clone}/dist/${deb}`;
  const field = await said(["dpkg-deb", "--field", path, "Architecture"]);
  assertEquals(field, "arm64\n");
  const at = `./usr/lib/tunnel/runtime-${hash.slice(0, 16)}/tunnel`;
  const unpacked = await bytesOf(
    'dpkg-deb --fsys-tarfile "$1" | tar -xO "$2"',
    ...[path, at],
  );
  assertEquals((await digest("SHA-256", unpacked)).toHex(), hash, "the .deb");

  const file = path.replace(/tunnel_(.*)_arm64\.deb$/, "tunnel-$1-linux-arm64");
  const carried = await carriedIn(file);
  assertEquals((await digest("SHA-256", carried)).toHex(), hash, "the file");
  const folder = file.slice(file.lastIndexOf("/") + 1);
  const archived = await bytesOf(
    'tar -xOzf "$1" "$2/tunnel"',
    ...[`${file}.tar.gz`, folder],
  );
  const whole = await Deno.readFile(file);
  assertEquals(archived.length, whole.length, "the archive");
  const materials = await Deno.readTextFile(`${file}.spdx.json`);
  const hex = sum.toHex();
  assertEquals(materials.includes(hex), true, "the bill of materials");
}
