/**
 * What a program prints, line by line: a read of a pipe gives whatever has come
 * by then, which is half a line as well as three.
 *
 * @module
 */

import { TextLineStream } from "@std/streams";

/** See the module description. */
export class PrintedLines implements AsyncDisposable {
  readonly #reader: ReadableStreamDefaultReader<string>;

  constructor(output: ReadableStream<Uint8Array<ArrayBuffer>>) {
    this.#reader = output.pipeThrough(new TextDecoderStream())
      .pipeThrough(new TextLineStream()).getReader();
  }

  /** @throws {Error} When the program ends without another line. */
  async next(): Promise<string> {
    const { value, done } = await this.#reader.read();
    if (done) throw new Error("It ended without another line");
    return value;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reader.cancel();
  }
}
