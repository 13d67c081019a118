/**
 * The root of a machine that has next to nothing: a shell, what scripts use, C
 * library, OpenSSL and dpkg's own files, taken from this machine.
 *
 * @module
 */

/** What the program's script and those of the package call. */
const PROGRAMS = [
  ...["sh", "cat", "chmod", "grep", "gzip", "head", "id", "ls", "mkdir", "mv"],
  ...["rm", "sync", "tail", "uname"],
];

/** What the runtime and the program open, beside what programs are linked to. */
const LIBRARIES = ["libssl.so.3"];

/** Makes it in `root`, a folder that is there. Needs root. */
export async function makeBareRoot(root: string): Promise<void> {
  for (
    const folder of [
      ...["bin", "usr/bin", "dev", "proc", "tmp", "root", "etc", "run"],
      ...["var/lib/dpkg/info", "var/lib/dpkg/updates"],
    ]
  ) await Deno.mkdir(`${root}/${folder}`, { recursive: true });
  for (const name of PROGRAMS) {
    const path = await said("sh", "-c", `command -v ${name}`);
    await copyWithLibraries(root, path, `/bin/${name}`);
  }
  // What the runtime of the package is linked to is what this one is.
  await copyLibraries(root, Deno.execPath());
  const cache = await said("ldconfig", "-p");
  for (const name of LIBRARIES) {
    const path = new RegExp(`^\\s*${name} .*=> (\\S+)$`, "m").exec(cache)?.[1];
    if (path === undefined) throw new Error(`Cannot find ${name} here`);
    await copyWithLibraries(root, path, path);
  }
  for (const name of ["status", "available"]) {
    await Deno.writeTextFile(`${root}/var/lib/dpkg/${name}`, "");
  }
  await Deno.writeTextFile(
    `${root}/etc/passwd`,
    "root:x:0:0::/root:/bin/sh\n",
  );
  await Deno.writeTextFile(`${root}/etc/group`, "root:x:0:\n");
}

async function copyWithLibraries(
  root: string,
  from: string,
  to: string,
): Promise<void> {
  await copyTo(root, await Deno.realPath(from), to);
  await copyLibraries(root, from);
}

async function copyLibraries(root: string, from: string): Promise<void> {
  const linked = await said("ldd", from).catch(() => "");
  for (const [, path = ""] of linked.matchAll(/(?:=> )?(\/\S+) \(0x/g)) {
    await copyTo(root, await Deno.realPath(path), path);
  }
}

async function copyTo(root: string, from: string, to: string): Promise<void> {
  const folder = `${root}${to.slice(0, to.lastIndexOf("/"))}`;
  await Deno.mkdir(folder, { recursive: true });
  await Deno.copyFile(from, `${root}${to}`);
}

async function said(command: string, ...args: string[]): Promise<string> {
  const { success, stdout } = await new Deno.Command(command, { args })
    .output();
  if (!success) throw new Error(`Cannot run ${command} ${args.join(" ")}`);
  return new TextDecoder().decode(stdout).trim();
}
