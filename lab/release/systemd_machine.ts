/**
 * A machine whose first process is a real systemd: Debian's, installed by
 * debootstrap into a root that is kept, with all that is written to it laid over.
 *
 * @module
 */

import { madeWhole, peerFolder } from "../../tests/support/program/missing.ts";
import { eventually } from "../../tests/support/watch/patience.ts";
import { type Said, said } from "./said.ts";

/** What the program of a machine needs of Debian, and the manager of units. */
const PACKAGES = ["systemd", "systemd-sysv", "libssl3", "procps"];

/** Made once for all clones: it takes minutes. */
export function debianRoot(
  suite = "bookworm",
  packages: readonly string[] = PACKAGES,
): Promise<string> {
  const root = peerFolder(`debian-root/${suite}+${packages.join("+")}`);
  return madeWhole(root, async (fresh) => {
    const included = `--include=${packages.join(",")}`;
    await said(["debootstrap", "--variant=minbase", included, suite, fresh]);
  });
}

/** Lays over `base` what is written; gives its root. @param folder Empty. */
export async function overlay(base: string, folder: string): Promise<string> {
  const root = `${folder}/root`;
  for (const name of ["root", "upper", "work"]) {
    await Deno.mkdir(`${folder}/${name}`);
  }
  await said([
    ...["mount", "-t", "overlay", "overlay", "-o"],
    `lowerdir=${base},upperdir=${folder}/upper,workdir=${folder}/work`,
    root,
  ]);
  return root;
}

/** Words that run inside of the namespaces of a process. */
const ENTERED = ["--pid", "--mount", "--net", "--uts", "--ipc", "--cgroup"];

/** See the module description. */
export class SystemdMachine {
  #boot: Deno.ChildProcess | undefined;
  #pid = 0;

  /** @param root All that there is. */
  private constructor(readonly root: string, private readonly folder: string) {}

  /** @param folder Where what is written goes; empty. */
  static async make(base: string, folder: string): Promise<SystemdMachine> {
    return new SystemdMachine(await overlay(base, folder), folder);
  }

  /** Settles when all that is started at boot has been. */
  async boot(): Promise<void> {
    const script = new URL("boot_systemd.sh", import.meta.url).pathname;
    this.#boot = new Deno.Command("unshare", {
      args: [
        ...[...ENTERED, "--fork", "--kill-child", "--propagation=private"],
        ...[script, this.root],
      ],
      stdout: "null",
      stderr: "inherit",
    }).spawn();
    const { pid } = this.#boot;
    await eventually("systemd has begun", async () => {
      const path = `/proc/${pid}/task/${pid}/children`;
      this.#pid = Number((await Deno.readTextFile(path)).trim().split(" ")[0]);
      if (this.#pid === 0) return false;
      const name = await Deno.readTextFile(`/proc/${this.#pid}/comm`);
      return name.trim() === "systemd";
    });
    await eventually("it is up", async () => {
      const state = await this.tried("systemctl is-system-running");
      return /running|degraded/.test(state.text);
    }, 60_000);
  }

  /** As a machine is switched off. */
  async halt(): Promise<void> {
    if (this.#boot === undefined) return;
    await this.tried("systemctl --no-block exit");
    await this.#boot.status;
    this.#boot = undefined;
  }

  async end(): Promise<void> {
    try {
      this.#boot?.kill("SIGKILL");
      await this.#boot?.status;
    } catch {
      // It has ended by itself.
    }
    await said(["umount", this.root]);
  }

  /** Words that run inside. */
  words(words: readonly string[]): string[] {
    const inside = ["nsenter", `--target=${this.#pid}`, ...ENTERED];
    const environment = ["env", "-i", "HOME=/root", "PATH=/usr/sbin:/usr/bin"];
    return [...inside, ...environment, ...words];
  }

  /** @param line Words with a blank between them; `more` are as they are. */
  said(line: string, ...more: readonly string[]): Promise<string> {
    return said(this.words([...line.split(" "), ...more]));
  }

  /** Whatever it ends with. */
  async tried(line: string, ...more: readonly string[]): Promise<Said> {
    try {
      return { isGood: true, text: await this.said(line, ...more) };
    } catch (error) {
      return { isGood: false, text: String(error) };
    }
  }

  /** Words of this machine's, in the other's network alone. */
  nearby(words: readonly string[]): string[] {
    return ["nsenter", `--target=${this.#pid}`, "--net", ...words];
  }

  async property(unit: string, name: string): Promise<string> {
    const text = await this.said("systemctl show -P", name, unit);
    return text.trim();
  }
}
