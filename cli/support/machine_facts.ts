/**
 * The machine's part of a bundle: system, kernel, limits, and which files the
 * state directories have; never their content.
 *
 * @module
 */

import { quietly } from "../../platform/errors/error_code.ts";

/** More are no state of ours. */
const FILES_MAX = 2_000;
const DEPTH_MAX = 6;

/** Longest text of /proc that is taken. */
const PROC_LENGTH_MAX = 4_000;

/** The machine, and this user's limits on it. */
export function machineFacts(): Readonly<Record<string, unknown>> {
  return {
    system: Deno.build.os,
    architecture: Deno.build.arch,
    target: Deno.build.target,
    kernel: quietly(() => Deno.osRelease()),
    hostname: quietly(() => Deno.hostname()),
    now: new Date().toISOString(),
    zoneOffsetMinutes: new Date().getTimezoneOffset(),
    uptimeSeconds: quietly(() => Deno.osUptime()),
    processors: navigator.hardwareConcurrency,
    load: quietly(() => Deno.loadavg()),
    memory: quietly(() => Deno.systemMemoryInfo()),
    uid: quietly(() => Deno.uid()),
    release: proc("/etc/os-release"),
    limits: proc("/proc/self/limits"),
    cgroup: proc("/proc/self/cgroup"),
    somaxconn: proc("/proc/sys/net/core/somaxconn"),
    portRange: proc("/proc/sys/net/ipv4/ip_local_port_range"),
    fileMax: proc("/proc/sys/fs/file-nr"),
  };
}

/** Files under a directory: names, modes and sizes. */
export function listedFiles(
  directory: string,
): readonly Readonly<Record<string, unknown>>[] {
  const found: Record<string, unknown>[] = [];
  const look = (path: string, depth: number) => {
    if (depth > DEPTH_MAX) return;
    for (const { name } of Deno.readDirSync(path)) {
      if (found.length >= FILES_MAX) return;
      const at = `${path}/${name}`;
      const file = quietly(() => Deno.lstatSync(at));
      if (file === undefined) continue;
      const kind = file.isDirectory
        ? "directory"
        : file.isFile
        ? "file"
        : "other";
      found.push({
        path: at.slice(directory.length + 1),
        kind,
        // In octal, as `ls` shows it.
        mode: ((file.mode ?? 0) & 0o7777).toString(8).padStart(4, "0"),
        bytes: file.size,
        uid: file.uid,
        modified: file.mtime?.toISOString(),
      });
      if (kind === "directory") quietly(() => look(at, depth + 1));
    }
  };
  look(directory, 0);
  return found;
}

/** The last bytes of a file, from the beginning of a line. */
export async function lastLines(
  path: string,
  bytesMax: number,
): Promise<string> {
  using file = await Deno.open(path);
  const { size } = await file.stat();
  const from = Math.max(0, size - bytesMax);
  await file.seek(from, Deno.SeekMode.Start);
  const bytes = new Uint8Array(Math.min(size, bytesMax));
  let length = 0;
  while (length < bytes.length) {
    const count = await file.read(bytes.subarray(length));
    if (count === null) break;
    length += count;
  }
  const text = new TextDecoder().decode(bytes.subarray(0, length));
  return from === 0 ? text : text.slice(text.indexOf("\n") + 1);
}

/** As all facts, it is left out of a bundle where it is missing. */
function proc(path: string): string | undefined {
  return quietly(() => Deno.readTextFileSync(path).slice(0, PROC_LENGTH_MAX));
}
