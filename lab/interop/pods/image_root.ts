/**
 * The root of our image, by the script of its Containerfile, of the program that
 * all tests start; and how an engine starts it.
 *
 * @module
 */

import { packagedFile } from "../../../tests/support/program/packaged_file.ts";
import { mustEnd } from "../../../tests/support/program/run.ts";

const DEPLOY = new URL("../../../deploy/image", import.meta.url).pathname;

/** What the Containerfile says of its containers. */
export interface ImageConfig {
  readonly entrypoint: readonly string[];
  readonly env: readonly string[];
  readonly uid: number;
}

export async function imageConfig(): Promise<ImageConfig> {
  const text = await Deno.readTextFile(`${DEPLOY}/Containerfile`);
  const said = (word: string) =>
    new RegExp(`^${word} (.*)$`, "m").exec(text)![1]!;
  return {
    entrypoint: JSON.parse(said("ENTRYPOINT")),
    env: said("ENV").split(" "),
    uid: Number(said("USER").split(":")[0]),
  };
}

/**
 * Makes it below `folder`, which is empty, with a package that has no more than
 * the script takes.
 *
 * @returns Its path.
 */
export async function makeImageRoot(folder: string): Promise<string> {
  const [cache, staging] = [`${folder}/cache`, `${folder}/staging`];
  await mustEnd([packagedFile(), "version"], {
    env: { TUNNEL_CACHE_DIR: cache },
  });
  const [deb, root] = [`${folder}/tunnel.deb`, `${folder}/root`];
  const control = "Package: tunnel\\nVersion: 0\\nArchitecture: all\\n" +
    "Maintainer: lab\\nDescription: lab\\n";
  await mustEnd([
    "sh",
    "-ec",
    `umask 022; mkdir -p "$1/usr/lib/tunnel" "$1/usr/share/doc/tunnel" "$1/DEBIAN"
    mv "$0"/runtime-* "$0"/tunnel-* "$1/usr/lib/tunnel"
    chmod -R u=rwX,go=rX "$1"; printf "${control}" >"$1/DEBIAN/control"
    dpkg-deb -Znone --root-owner-group --build "$1" "$2" >/dev/null
    "${DEPLOY}/root.sh" "$2" "$3"`,
    ...[cache, staging, deb, root],
  ]);
  await Deno.remove(staging, { recursive: true });
  await Deno.remove(deb);
  return root;
}
