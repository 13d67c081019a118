/**
 * Images for containers, made here of a folder: busybox under all its names, and
 * ours.
 *
 * @module
 */

import { findDebianProgram } from "../../../tests/support/program/debian.ts";
import { mustEnd } from "../../../tests/support/program/run.ts";
import { imageConfig, makeImageRoot } from "../pods/image_root.ts";

/** An image before it is an archive. */
interface Image {
  /** As pods name it. */
  readonly name: string;
  /** Its folder. */
  readonly root: string;
  /** As a Containerfile has it. */
  readonly config: object;
}

/** As pods name it. */
export const BOX = "localhost/box:1";

/** For what a check looks at, and for the sandbox of a pod. */
export async function makeBox(folder: string): Promise<Image> {
  const { path } = await findDebianProgram("busybox");
  const root = `${folder}/box`;
  for (const name of ["bin", "tmp", "etc"]) {
    await Deno.mkdir(`${root}/${name}`, { recursive: true });
  }
  await Deno.copyFile(path, `${root}/bin/busybox`);
  // Where there is nothing else: one that needs libraries fails here.
  await mustEnd(["chroot", root, "/bin/busybox", "--install", "-s", "/bin"]);
  const Entrypoint = ["/bin/sleep", "1000000"];
  return { name: BOX, root, config: { Entrypoint, Env: ["PATH=/bin"] } };
}

/** @param name As the chart's value has it. */
export async function makeOurs(folder: string, name: string): Promise<Image> {
  const { entrypoint, env, uid } = await imageConfig();
  const config = { Entrypoint: entrypoint, Env: env, User: `${uid}` };
  return { name, root: await makeImageRoot(folder), config };
}

/** @returns The path of an archive as `docker save` writes them. */
export async function archiveOf(
  { name, root, config }: Image,
): Promise<string> {
  const image = `${root}-image`;
  await Deno.mkdir(image);
  await mustEnd(["tar", "-cf", `${image}/layer.tar`, "-C", root, "."]);
  const layer = await Deno.readFile(`${image}/layer.tar`);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", layer));
  await Deno.writeTextFile(
    `${image}/config.json`,
    JSON.stringify({
      architecture: Deno.build.arch === "aarch64" ? "arm64" : "amd64",
      os: "linux",
      config,
      rootfs: { type: "layers", diff_ids: [`sha256:${digest.toHex()}`] },
    }),
  );
  await Deno.writeTextFile(
    `${image}/manifest.json`,
    JSON.stringify([{
      Config: "config.json",
      RepoTags: [name],
      Layers: ["layer.tar"],
    }]),
  );
  const archive = `${root}.tar`;
  const files = ["manifest.json", "config.json", "layer.tar"];
  await mustEnd(["tar", "-cf", archive, "-C", image, ...files]);
  return archive;
}
