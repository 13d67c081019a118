/**
 * Which process listens on a port of this machine, as /proc knows it (Linux).
 * Nothing is opened: a port that is tried by listening on it is taken for a
 * moment, and a server that starts then would fail.
 *
 * @module
 */

import { listProcFolder, readProcFile, readProcLink } from "./proc_files.ts";

/** Who listens there. */
export interface PortOwner {
  /** Absent: another user's, whose descriptors may not be looked at. */
  readonly pid?: number;
  /** Its command line, or its name. */
  readonly command?: string;
}

/** For sentences. */
export function ownerWords({ pid, command }: PortOwner): string {
  return pid === undefined
    ? "another user's process"
    : `process ${pid} (${command})`;
}

/** States of `/proc/net/tcp` (net/tcp_states.h). */
const LISTENING = "0A";

/**
 * Whoever listens on a TCP port, on any address.
 *
 * @returns `undefined`: nobody does, or it cannot be known.
 */
export function portOwner(port: number): PortOwner | undefined {
  const inodes = new Set(
    ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((file) =>
      listeningInodes(readProcFile(file) ?? "", port)
    ),
  );
  if (inodes.size === 0) return undefined;
  return ownerOf(inodes) ?? {};
}

/** Of a table as the kernel writes it: sockets that listen on a port. */
export function listeningInodes(table: string, port: number): string[] {
  return table.split("\n").slice(1).flatMap((line) => {
    const [, local = "", , state, , , , , , inode] = line.trim().split(/\s+/);
    const isIt = state === LISTENING &&
      Number.parseInt(local.split(":").at(-1) ?? "", 16) === port;
    return isIt && inode !== undefined ? [inode] : [];
  });
}

/**
 * Users whose sockets take connections to an address of loopback. The kernel
 * tells it of all users, where it does not tell whose process it is.
 *
 * @param host `127.0.0.1`, `::1`.
 * @returns Empty: nobody does, or it cannot be known.
 */
export function listeningUsers(host: string, port: number): readonly number[] {
  const addresses = kernelForms(host);
  const users = ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((file) =>
    usersIn(readProcFile(file) ?? "", addresses, port)
  );
  return [...new Set(users)];
}

/** The same of a table as the kernel writes it. */
export function usersIn(
  table: string,
  addresses: ReadonlySet<string>,
  port: number,
): number[] {
  return table.split("\n").slice(1).flatMap((line) => {
    const [, local = "", , state, , , , uid] = line.trim().split(/\s+/);
    const [address = "", number = ""] = local.split(":");
    const isIt = state === LISTENING && addresses.has(address) &&
      Number.parseInt(number, 16) === port;
    return isIt ? [Number(uid)] : [];
  });
}

/**
 * Whose end of a connection within loopback another end is.
 *
 * @param from Its port.
 * @param to Ours.
 * @returns `undefined`: it cannot be known.
 */
export function connectedUser(from: number, to: number): number | undefined {
  for (const file of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    for (const line of (readProcFile(file) ?? "").split("\n").slice(1)) {
      const [, local = "", remote = "", state, , , , uid] = line.trim()
        .split(/\s+/);
      const isIt = state === ESTABLISHED && LOOPBACK.has(hostIn(local)) &&
        LOOPBACK.has(hostIn(remote)) && portIn(local) === from &&
        portIn(remote) === to;
      if (isIt) return Number(uid);
    }
  }
  return undefined;
}

const ESTABLISHED = "01";

function hostIn(place: string): string {
  return place.split(":")[0] ?? "";
}

function portIn(place: string): number {
  return Number.parseInt(place.split(":")[1] ?? "", 16);
}

const MAPPED = "0000000000000000FFFF0000";

/** Words in the byte order of the machine, which is little-endian. */
export function kernelForms(host: string): ReadonlySet<string> {
  const any = ["0".repeat(8), "0".repeat(32)];
  if (host === "::1") return new Set([...any, `${"0".repeat(24)}01000000`]);
  const bytes = host.replace(/^::ffff:/i, "").split(".").map(Number);
  const hex = new Uint8Array(bytes.reverse()).toHex().toUpperCase();
  return new Set([...any, hex, `${MAPPED}${hex}`]);
}

function ownerOf(inodes: ReadonlySet<string>): PortOwner | undefined {
  for (const name of listProcFolder("/proc") ?? []) {
    if (!/^\d+$/.test(name)) continue;
    const holds = listProcFolder(`/proc/${name}/fd`)?.some((fd) => {
      const found = /^socket:\[(\d+)\]$/.exec(
        readProcLink(`/proc/${name}/fd/${fd}`) ?? "",
      );
      return found !== null && inodes.has(found[1]!);
    });
    if (holds === true) return { pid: Number(name), command: commandOf(name) };
  }
  return undefined;
}

/** A command line may be as long as its owner likes. */
const COMMAND_LENGTH_MAX = 120;

function commandOf(pid: string): string {
  const words = (readProcFile(`/proc/${pid}/cmdline`) ?? "").split("\0");
  // Of a packaged program: the runtime and its flags say nothing to people.
  const at = words.findIndex((word) => /\/tunnel-[0-9a-f]+\.js$/.test(word));
  if (at >= 0) words.splice(0, at + 1, "tunnel");
  const line = words.join(" ").trim() ||
    readProcFile(`/proc/${pid}/comm`)?.trim() || "unknown";
  return line.length > COMMAND_LENGTH_MAX
    ? `${line.slice(0, COMMAND_LENGTH_MAX)}…`
    : line;
}

const LOOPBACK: ReadonlySet<string> = kernelForms("127.0.0.1");
