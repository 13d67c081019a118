/**
 * A child process that is spoken to and answers, line by line.
 *
 * @module
 */

/** See the module description. */
export class SpokenChild {
  readonly #process: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reader: ReadableStreamDefaultReader<string>;
  #text = "";

  /** @param niceness Of its place on the processors; 19 is last. */
  constructor(script: string, args: readonly string[], niceness = 0) {
    const path = new URL(script, import.meta.url).pathname;
    const config = new URL("../../deno.json", import.meta.url).pathname;
    this.#process = new Deno.Command("nice", {
      args: [
        ...["-n", String(niceness), Deno.execPath(), "run", "--quiet"],
        ...["--allow-net", "--allow-read", "--allow-write", "--allow-env"],
        ...["--no-prompt", `--config=${config}`, path],
        ...args,
      ],
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    this.#writer = this.#process.stdin.getWriter();
    this.#reader = this.#process.stdout
      .pipeThrough(new TextDecoderStream()).getReader();
  }

  get pid(): number {
    return this.#process.pid;
  }

  async say(line: string): Promise<void> {
    await this.#writer.write(new TextEncoder().encode(`${line}\n`));
  }

  /** @throws {Error} When it ends without another line. */
  async line(): Promise<string> {
    for (;;) {
      const end = this.#text.indexOf("\n");
      if (end !== -1) {
        const line = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 1);
        return line;
      }
      const { value, done } = await this.#reader.read();
      if (done) throw new Error(`Child ${this.pid} ended without an answer`);
      this.#text += value;
    }
  }

  async ask(line: string): Promise<string> {
    await this.say(line);
    return await this.line();
  }

  async stop(): Promise<void> {
    try {
      this.#process.kill("SIGKILL");
    } catch {
      // It has ended by itself.
    }
    await this.#process.status;
    await this.#reader.cancel();
    await this.#writer.abort().catch(() => {});
  }
}
