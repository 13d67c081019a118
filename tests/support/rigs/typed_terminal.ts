import { patience } from "../watch/patience.ts";
/**
 * A command on a terminal that a test types into: `script` (util-linux) makes
 * the terminal, `stty` its size. What is on the screen is what was drawn last.
 *
 * @module
 */

// deno-lint-ignore no-control-regex -- what terminals obey
const CONTROLS = /\x1b\[[0-9;?]*[A-Za-z]|\r/g;

/** How long the next screen may take, on a machine that is busy. */
const WAIT_MS = 15_000;

export class TypedTerminal implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #typing: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reading: Promise<void>;
  #output = "";
  #changed = Promise.withResolvers<void>();

  /**
   * @param command For a shell. What comes of the terminal is printed behind
   *   it: `code N`, and `sane` when all its settings are as they were.
   */
  constructor(command: string, size: { columns: number; rows: number }) {
    const shell = `tty; ${sizing(size)}; before=$(stty -g); ${command}; ` +
      'echo "code $?"; [ "$before" = "$(stty -g)" ] && echo sane';
    this.#child = new Deno.Command("script", {
      args: ["-qfec", shell, "/dev/null"],
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
      env: { TERM: "xterm-256color", SHELL: "/bin/sh" },
    }).spawn();
    this.#typing = this.#child.stdin.getWriter();
    this.#reading = this.#read();
  }

  /** Whether this machine has what it takes. */
  static get isThere(): boolean {
    try {
      return new Deno.Command("script", { args: ["--version"] })
        .outputSync().success;
    } catch {
      return false;
    }
  }

  /** Everything that was written, as it was. */
  get output(): string {
    return this.#output;
  }

  /** The lines that were drawn last, without colours. */
  get screen(): string {
    const frames = this.#output.split("\x1b[H");
    return frames.at(-1)!.replaceAll(CONTROLS, "");
  }

  async type(keys: string): Promise<void> {
    await this.#typing.write(new TextEncoder().encode(keys));
  }

  /** As a window that is pulled: the program is sent SIGWINCH. */
  async resize(size: { columns: number; rows: number }): Promise<void> {
    const [tty = ""] = /\/dev\/\S+/.exec(this.#output) ?? [];
    const { columns, rows } = size;
    const { success } = await new Deno.Command("stty", {
      args: ["-F", tty, "cols", `${columns}`, "rows", `${rows}`],
    }).output();
    if (!success) throw new Error(`cannot resize ${tty}`);
  }

  /** Settles when what is on the screen matches. */
  until(pattern: RegExp): Promise<string> {
    return this.#until(pattern, () => this.screen);
  }

  /** Settles when what was written matches. */
  untilWritten(pattern: RegExp): Promise<string> {
    return this.#until(pattern, () => this.#output);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended.
    }
    await this.#typing.abort().catch(() => {});
    await this.#child.status;
    await this.#reading;
  }

  async #until(pattern: RegExp, seen: () => string): Promise<string> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      const fail = () => reject(new Error(`no ${pattern} in: ${seen()}`));
      timer = setTimeout(fail, patience(WAIT_MS));
    });
    try {
      while (!pattern.test(seen())) {
        await Promise.race([this.#changed.promise, late]);
      }
      return seen();
    } finally {
      clearTimeout(timer);
    }
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    for await (const bytes of this.#child.stdout) {
      this.#output += decoder.decode(bytes, { stream: true });
      this.#changed.resolve();
      this.#changed = Promise.withResolvers();
    }
  }
}

function sizing(size: { columns: number; rows: number }): string {
  return `stty cols ${size.columns} rows ${size.rows}`;
}
