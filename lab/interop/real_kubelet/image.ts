/**
 * An image for containers that is made here: busybox, under all its names.
 *
 * @module
 */

import { findDebianProgram } from "../../../tests/support/program/debian.ts";
import { mustEnd } from "../../../tests/support/program/run.ts";

/** As pods name it. */
export const IMAGE = "localhost/box:1";

/** @returns The path of an archive as `docker save` writes them. */
export async function makeImage(folder: string): Promise<string> {
  const { path } = await findDebianProgram("busybox");
  const root = `${folder}/image-root`;
  for (const name of ["bin", "tmp", "etc"]) {
    await Deno.mkdir(`${root}/${name}`, { recursive: true });
  }
  await Deno.copyFile(path, `${root}/bin/busybox`);
  // Where there is nothing else: one that needs libraries fails here.
  await mustEnd(["chroot", root, "/bin/busybox", "--install", "-s", "/bin"]);
  const image = `${folder}/image`;
  await Deno.mkdir(image);
  await mustEnd(["tar", "-cf", `${image}/layer.tar`, "-C", root, "."]);
  const layer = await Deno.readFile(`${image}/layer.tar`);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", layer));
  await Deno.writeTextFile(
    `${image}/config.json`,
    JSON.stringify({
      architecture: Deno.build.arch === "aarch64" ? "arm64" : "amd64",
      os: "linux",
      // For the sandbox of a pod, which only has to be there.
      config: {
        Entrypoint: ["/bin/sleep", "1000000"],
        Env: ["PATH=/bin"],
      },
      rootfs: { type: "layers", diff_ids: [`sha256:${digest.toHex()}`] },
    }),
  );
  await Deno.writeTextFile(
    `${image}/manifest.json`,
    JSON.stringify([{
      Config: "config.json",
      RepoTags: [IMAGE],
      Layers: ["layer.tar"],
    }]),
  );
  const archive = `${folder}/image.tar`;
  const files = ["manifest.json", "config.json", "layer.tar"];
  await mustEnd(["tar", "-cf", archive, "-C", image, ...files]);
  return archive;
}
