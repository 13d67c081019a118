import { UNFINISHED } from "../../../platform/files/atomic_file.ts";

/**
 * Copies a folder as `cp -a` does. Its owner may be at work: sockets stay behind,
 * and so do files that are being written, whose names pass.
 */
export function copyFolder(from: string, to: string): void {
  Deno.mkdirSync(to, { mode: 0o700 });
  for (const { name, isDirectory, isFile } of Deno.readDirSync(from)) {
    const [source, target] = [`${from}/${name}`, `${to}/${name}`];
    if (name.startsWith(UNFINISHED)) continue;
    if (isDirectory) copyFolder(source, target);
    if (isFile) Deno.copyFileSync(source, target); // Keeps the mode.
  }
}
