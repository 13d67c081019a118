/**
 * In what a command is run that shall go wrong: as somebody who may not read what
 * is not theirs, with another file system, with few descriptors, beside a program
 * that stands still.
 *
 * @module
 */

import type { Child } from "../support/program/child.ts";

/** What stands before a command, and what is done for as long as it runs. */
export interface Surroundings {
  /** Words before the command, such as a shell that sets a limit. */
  readonly prefix?: readonly string[];
  /** Makes it so for as long as `run` takes. */
  readonly around?: (run: () => Promise<void>) => Promise<void>;
}

/** Who owns it meanwhile: nobody who is root. */
const SOMEBODY_ELSE = 65_534;

/**
 * As root: without root's right to read everything, and with a directory that is
 * somebody else's. As anybody else: with one that lets nobody in.
 */
export function withoutPrivilege(directory: string): Surroundings {
  if (Deno.uid() !== 0) {
    return {
      around: async (run) => {
        Deno.chmodSync(directory, 0);
        await run().finally(() => Deno.chmodSync(directory, 0o700));
      },
    };
  }
  return {
    prefix: [
      "setpriv",
      "--bounding-set=-dac_override,-dac_read_search",
      "--inh-caps=-dac_override,-dac_read_search",
    ],
    around: async (run) => {
      Deno.chownSync(directory, SOMEBODY_ELSE, SOMEBODY_ELSE);
      await run().finally(() => Deno.chownSync(directory, 0, 0));
    },
  };
}

/** With what is mounted for the command alone. @param mount Words of `mount`. */
export function mounted(mount: string): Surroundings {
  const script = `mount ${mount}; exec "$@"`;
  return { prefix: ["unshare", "-m", "sh", "-c", script, "mounted"] };
}

/** A file system of so many KiB, all of which are taken. */
export function onFullDisk(path: string, kib: number): Surroundings {
  return mounted(
    `-t tmpfs -o size=${kib}k none ${path} && ` +
      `head -c ${kib * 1024} /dev/zero >${path}/full`,
  );
}

/** What is there, and cannot be changed. */
export function onReadOnlyDisk(path: string): Surroundings {
  return mounted(`--bind -o ro ${path} ${path}`);
}

/** Words that start a program with a limit, as a unit or a shell would. */
export function limitedTo(descriptors: number): readonly string[] {
  return ["sh", "-c", `ulimit -n ${descriptors} && exec "$@"`, "limit"];
}

/** While a program stands still. */
export function whileStill(child: () => Child): Surroundings {
  return {
    around: async (run) => {
      child().signal("SIGSTOP");
      await run().finally(() => child().signal("SIGCONT"));
    },
  };
}
