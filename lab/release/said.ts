/**
 * Runs programs of the machine, and carries bytes through a tunnel's netcat.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";

/** What a program has said, and whether it did what it was asked. */
export interface Said {
  readonly isGood: boolean;
  readonly text: string;
}

/** @throws {Error} Its last words, if it ends with anything but 0. */
export async function said(
  words: readonly string[],
  options: Deno.CommandOptions = {},
): Promise<string> {
  const [command = "", ...args] = words;
  const { code, stdout, stderr } = await new Deno.Command(command, {
    args,
    ...options,
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  if (code === 0) return `${text(stdout)}${text(stderr)}`;
  throw new Error(
    `${words.join(" ")} ends with ${code}: ${text(stderr) || text(stdout)}`,
  );
}

/** A `tunnel dial` to what sends back what it gets. */
export class Connection {
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;

  constructor(private readonly child: Deno.ChildProcess) {
    this.#writer = child.stdin.getWriter();
    this.#reader = child.stdout.getReader();
  }

  async exchange(line: string): Promise<void> {
    await this.#writer.write(new TextEncoder().encode(line));
    let text = "";
    while (text.length < line.length) {
      const { value, done } = await this.#reader.read();
      assert(!done, `the connection has ended after ${JSON.stringify(text)}`);
      text += new TextDecoder().decode(value);
    }
    assertEquals(text, line);
  }

  async close(): Promise<void> {
    await this.#writer.close();
    await this.child.status;
  }
}
