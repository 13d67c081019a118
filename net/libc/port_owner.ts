/**
 * Which process listens on a port of this machine, as /proc knows it (Linux).
 * Nothing is opened: a port that is tried by listening on it is taken for a
 * moment, and a server that starts then would fail.
 *
 * @module
 */

import { listProcFolder, readProcFile, readProcLink } from "./proc_files.ts";

/** The process that listens there. */
export interface PortOwner {
  /** Absent: another user's, whose descriptors may not be looked at. */
  readonly pid?: number;
  /** Its command line, or its name. */
  readonly command?: string;
}

/** For use in sentences. */
export function ownerWords({ pid, command }: PortOwner): string {
  return pid === undefined
    ? "another user's process"
    : `process ${pid} (${command})`;
}

/** A socket in a table as the kernel writes it (proc_net_tcp.txt). */
interface Row {
  readonly local: Place;
  readonly remote: Place;
  readonly state: string;
  readonly user: number;
  readonly inode: string;
}

interface Place {
  readonly host: string;
  readonly port: number;
}

/** States (net/tcp_states.h). */
const ESTABLISHED = "01";
const LISTENING = "0A";

function rowsOf(table: string): Row[] {
  return table.split("\n").slice(1).flatMap((line) => {
    const [, local, remote, state, , , , user, , inode] = line.trim()
      .split(/\s+/);
    return local && remote && state && inode
      ? [{
        ...{ local: placeOf(local), remote: placeOf(remote), state, inode },
        user: Number(user),
      }]
      : [];
  });
}

function placeOf(text: string): Place {
  const [host = "", port = ""] = text.split(":");
  return { host, port: Number.parseInt(port, 16) };
}

function tables(): string {
  return ["/proc/net/tcp", "/proc/net/tcp6"]
    .map((file) => readProcFile(file) ?? "").join("\n");
}

/**
 * The process that listens on a TCP port, on any address.
 *
 * @returns `undefined`: there is none, or it is unknown.
 */
export function portOwner(port: number): PortOwner | undefined {
  const inodes = new Set(listeningInodes(tables(), port));
  if (inodes.size === 0) return undefined;
  return ownerOf(inodes) ?? {};
}

/** Lines of a kernel's table for sockets that listen on a port. */
export function listeningInodes(table: string, port: number): string[] {
  return rowsOf(table)
    .filter(({ state, local }) => state === LISTENING && local.port === port)
    .map(({ inode }) => inode);
}

/**
 * Users whose sockets take connections to an address of loopback. The kernel
 * tells that for all users, even if it hides the process.
 *
 * @param host `127.0.0.1`, `::1`.
 * @returns Empty: there is none, or it is unknown.
 */
export function listeningUsers(host: string, port: number): readonly number[] {
  return [...new Set(usersIn(tables(), kernelForms(host), port))];
}

/** The same of a table as the kernel writes it. */
export function usersIn(
  table: string,
  addresses: ReadonlySet<string>,
  port: number,
): number[] {
  return rowsOf(table)
    .filter(({ state, local }) =>
      state === LISTENING && addresses.has(local.host) && local.port === port
    )
    .map(({ user }) => user);
}

/**
 * Whose end of a connection within loopback another end is.
 *
 * @param from Its port.
 * @param to Ours.
 * @returns `undefined`: it cannot be known.
 */
export function connectedUser(from: number, to: number): number | undefined {
  return rowsOf(tables()).find(({ state, local, remote }) =>
    state === ESTABLISHED && LOOPBACK.has(local.host) &&
    LOOPBACK.has(remote.host) && local.port === from && remote.port === to
  )?.user;
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
  // For a packaged program: the runtime and its flags tell people nothing.
  const at = words.findIndex((word) => /\/tunnel-[0-9a-f]+\.js$/.test(word));
  if (at >= 0) words.splice(0, at + 1, "tunnel");
  const line = words.join(" ").trim() ||
    readProcFile(`/proc/${pid}/comm`)?.trim() || "unknown";
  return line.length > COMMAND_LENGTH_MAX
    ? `${line.slice(0, COMMAND_LENGTH_MAX)}…`
    : line;
}

const LOOPBACK: ReadonlySet<string> = kernelForms("127.0.0.1");
