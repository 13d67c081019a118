/**
 * A machine as the documents mean it: a network of its own, and folders such as
 * /var/lib, /run and /etc that nobody else sees, so that lines of a page can be
 * run as they stand there.
 *
 * @module
 */

import { Child } from "../../tests/support/program/child.ts";

/** What a line came to. */
export interface Ran {
  readonly code: number;
  /** Standard output and error. */
  readonly said: string;
}

/** How a line is run. */
export interface RunOptions {
  /** Instead of placeholders, such as `TOKEN`. */
  readonly with?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

/** See the module description. */
export class Machine {
  readonly #children: Child[] = [];
  #logs = 0;

  /**
   * @param folder The working directory of what is run.
   * @param bin Holds `tunnel`, and stands first in PATH.
   * @param prefix Words that lead into it; none for the one this process is in.
   */
  constructor(
    readonly folder: string,
    readonly bin: string,
    readonly prefix: readonly string[] = [],
  ) {}

  /** A path in the working directory. */
  path(name: string): string {
    return `${this.folder}/${name}`;
  }

  async write(name: string, text: string | Uint8Array): Promise<void> {
    const bytes = typeof text === "string"
      ? new TextEncoder().encode(text)
      : text;
    await Deno.writeFile(this.path(name), bytes, { mode: 0o600 });
  }

  /** Runs a script to its end. */
  async run(script: string, env: RunOptions["env"] = {}): Promise<Ran> {
    const [program, ...args] = this.#words(`{ ${script}\n} 2>&1`, env);
    const { code, stdout } = await new Deno.Command(program!, {
      args,
      stdin: "null",
      stderr: "null",
    }).output();
    return { code, said: new TextDecoder().decode(stdout) };
  }

  /** As {@linkcode run}, for what must not fail. */
  async must(script: string): Promise<string> {
    const { code, said } = await this.run(script);
    if (code !== 0) throw new Error(`${script}: exit ${code}: ${said}`);
    return said;
  }

  /** Starts a command that goes on, and waits until it has printed `until`. */
  async start(
    command: string,
    until: RegExp,
    env: RunOptions["env"] = {},
  ): Promise<Child> {
    const child = new Child({
      name: command.slice(0, 60),
      command: this.#words(`exec ${command}`, env),
      logFile: `${this.folder}/.log-${++this.#logs}`,
    });
    this.#children.push(child);
    await child.untilPrinted(until);
    return child;
  }

  /** Ends all that runs here, the youngest first, and looks at what they said. */
  async stop(): Promise<void> {
    const logs: string[] = [];
    for (const child of this.#children.splice(0).toReversed()) {
      await child.stop();
      logs.push(await Deno.readTextFile(child.logFile));
    }
    const slip = /^.*(?:TUN907|run again with the --allow).*$/m.exec(
      logs.join("\n"),
    );
    if (slip !== null) throw new Error(slip[0]);
  }

  /** What a user's shell has in its environment, and nothing of ours. */
  #words(script: string, env: RunOptions["env"] = {}): string[] {
    const variables = {
      PATH: `${this.bin}:${Deno.env.get("PATH")}`,
      HOME: Deno.env.get("HOME") ?? "/root",
      NO_COLOR: "1",
      ...env,
    };
    const settings = Object.entries(variables).map(([name, value]) =>
      `${name}=${value}`
    );
    return [
      ...this.prefix,
      ...["env", "-i", ...settings],
      ...["sh", "-c", `cd '${this.folder}' || exit 99\n${script}`],
    ];
  }
}
