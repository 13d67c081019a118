/**
 * Runs the suite where nothing can stay behind: in network, mount and process
 * namespaces of its own. When the first process in there ends, however that
 * comes, the kernel ends all others and takes namespaces, devices and mounts
 * with them.
 *
 * @module
 */

import { RIGHTS } from "../../cli/program/rights.ts";

/** Exit status of a run that somebody stopped: its logs say nothing. */
export const STOPPED = 130;

/** Says that this process is the one inside, and where its folder is. */
const INSIDE_FLAG = "--inside=";

const ROOT = new URL("../../", import.meta.url).pathname;

/** What `hosts` says in there: targets beside agents, and one behind two. */
const HOSTS = "127.0.0.1 localhost n1 n2 n3 n4 c1\n10.98.0.40 site\n";

/** Our own name server, see `name_server.ts`. */
const RESOLVER = "nameserver 10.98.0.1\noptions timeout:1 attempts:2\n";

const PREPARE = [
  "set -e",
  "ip link set lo up",
  "mkdir -p /run/netns",
  "mount -t tmpfs none /run/netns",
  'mount --bind "$0/hosts" /etc/hosts',
  'mount --bind "$0/resolv.conf" /etc/resolv.conf',
  'exec "$@"',
].join("; ");

/** Where cgroups of the first version are, whose memory limits bind at once. */
export const MEMORY_GROUPS = "/sys/fs/cgroup/memory";

/**
 * A group of the run whose folder this is, or is in. The only thing that goes
 * with no namespace: whoever is outside removes what was left.
 */
export function memoryGroupOf(folder: string): string {
  return `${MEMORY_GROUPS}/tunnel-${/chaos-[^/]+/.exec(folder)![0]}`;
}

/** The folder of the run, when this process is the one inside. */
export function sandboxFolder(args: readonly string[]): string | undefined {
  return args.find((arg) => arg.startsWith(INSIDE_FLAG))
    ?.slice(INSIDE_FLAG.length);
}

/** Why there can be no sandbox here; `undefined` when there can. */
export async function sandboxObstacle(): Promise<string | undefined> {
  if (Deno.build.os !== "linux") return "it needs Linux's namespaces";
  if (Deno.uid() !== 0) return "it needs root, for namespaces of its own";
  for (const program of ["unshare", "nsenter", "ip", "prlimit"]) {
    if (!await succeeds('command -v "$0"', program)) {
      return `there is no ${program}`;
    }
  }
  // The platform opens /dev only to programs that may do everything.
  if (await succeeds('test -c "$0"', "/dev/net/tun")) return undefined;
  return "there is no /dev/net/tun";
}

async function succeeds(script: string, word: string): Promise<boolean> {
  const command = new Deno.Command("sh", { args: ["-c", script, word] });
  return (await command.output()).success;
}

/**
 * Runs `module` again inside, with the same arguments.
 *
 * @param folder Of the run; made by the caller, and removed by it.
 * @returns Its exit status.
 */
export async function runInSandbox(
  module: string,
  args: readonly string[],
  folder: string,
): Promise<number> {
  await Deno.writeTextFile(`${folder}/hosts`, HOSTS);
  await Deno.writeTextFile(`${folder}/resolv.conf`, RESOLVER);
  const child = new Deno.Command("unshare", {
    args: [
      ...["--net", "--mount", "--pid", "--fork", "--kill-child"],
      ...["--mount-proc", "sh", "-c", PREPARE, folder],
      ...[Deno.execPath(), "run", "--quiet", "--no-prompt", ...RIGHTS.programs],
      ...[`--config=${ROOT}deno.json`, module],
      ...[`${INSIDE_FLAG}${folder}`, ...args],
    ],
    stdin: "null",
    // Whatever makes a folder for a while makes it in the run's own.
    env: { TMPDIR: folder },
  }).spawn();
  // The kernel then ends the one inside, and that one's end everything else.
  let isStopped = false;
  const end = () => {
    isStopped = true;
    child.kill("SIGKILL");
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, end);
  }
  const { code } = await child.status;
  // There is none when nobody needed it, or who did has removed it.
  await succeeds('rmdir "$0"', memoryGroupOf(folder));
  return isStopped ? STOPPED : code;
}
