/**
 * Programs with files of their own in `/etc`, where that is allowed: each has
 * mounts of its own.
 *
 * @module
 */

const UNSHARE = ["unshare", "--mount", "--propagation", "private"];

/** Whether programs can have files of their own here. */
export const mayMount = Deno.build.os === "linux" && await isAllowed();

async function isAllowed(): Promise<boolean> {
  try {
    const [command = "", ...args] = UNSHARE;
    return (await new Deno.Command(command, {
      args: [...args, "mount", "--bind", "/etc/hostname", "/etc/resolv.conf"],
      stdout: "null",
      stderr: "null",
    }).output()).success;
  } catch {
    return false;
  }
}

/**
 * The words before those of a program.
 *
 * @param folder Where the files are kept; they may change while it runs.
 * @param files Texts by name; each is there already.
 */
export function withOwnEtc(
  folder: string,
  files: Readonly<Record<string, string>>,
): string[] {
  const mounts = Object.entries(files).map(([name, text]) => {
    Deno.writeTextFileSync(`${folder}/${name}`, text);
    return `mount --bind ${folder}/${name} /etc/${name} &&`;
  });
  return [...UNSHARE, "sh", "-c", `${mounts.join(" ")} exec "$@"`, "sh"];
}
