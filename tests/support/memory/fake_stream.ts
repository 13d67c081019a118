/**
 * A `Stream` that sends nowhere and remembers everything.
 *
 * For tests of what rides on streams: they play the engine's part by calling
 * the events themselves, and set `credit` to say how much may be sent.
 *
 * @module
 */

import type { HeaderField } from "../../../proto/hpack/header_field.ts";
import { ReceiveBudget } from "../../../proto/streams/receive_budget.ts";
import type { Stream } from "../../../proto/streams/stream.ts";

/** See the module description. */
export class FakeStream implements Stream {
  readonly id = 1;
  /** Bytes that the fake peer still takes. */
  credit = Infinity;
  /** Bytes that one frame carries at most. */
  frameBytesMax = 16_384;
  /**
   * What was sent, in order: a header section as `name: value` lines with `;`
   * at the end of the stream, `data N`, `end`, `reset CODE`.
   */
  readonly log: string[] = [];
  /** The bytes of all DATA. */
  readonly body: number[] = [];
  /** The header sections that were sent. */
  readonly sections: (readonly HeaderField[])[] = [];
  consumedBytes = 0;
  isAwaitingRoom = false;
  /** Set once the stream cannot send any more. */
  isDone = false;

  get room(): number {
    return this.isDone ? 0 : Math.min(this.credit, this.frameBytesMax);
  }

  sendHeaders(fields: readonly HeaderField[], endStream: boolean): void {
    this.#assertSendable();
    this.sections.push(fields);
    const lines = fields.map(({ name, value }) => `${name}: ${value}`);
    this.log.push(lines.join("\n") + (endStream ? "\n;" : ""));
    if (endStream) this.isDone = true;
  }

  sendFrame(head: Uint8Array, body: Uint8Array, endStream = false): void {
    this.#assertSendable();
    const bytes = head.length + body.length;
    if (bytes > this.room) {
      throw new RangeError(`${bytes} bytes in a room of ${this.room}`);
    }
    this.credit -= bytes;
    for (const byte of head) this.body.push(byte);
    for (const byte of body) this.body.push(byte);
    this.log.push(`data ${bytes}`);
    if (endStream) this.end();
  }

  write(chunk: Uint8Array): number {
    let sent = 0;
    while (sent < chunk.length && this.room > 0) {
      const piece = chunk.subarray(sent, sent + this.room);
      this.sendFrame(new Uint8Array(0), piece);
      sent += piece.length;
    }
    if (sent < chunk.length) this.isAwaitingRoom = true;
    return sent;
  }

  awaitRoom(): void {
    this.isAwaitingRoom = true;
  }

  end(): void {
    this.#assertSendable();
    this.log.push("end");
    this.isDone = true;
  }

  consumed(bytes: number): void {
    this.consumedBytes += bytes;
  }

  divideBudget(): ReceiveBudget {
    return new ReceiveBudget();
  }

  reset(code: number): void {
    this.log.push(`reset ${code}`);
    this.isDone = true;
  }

  #assertSendable(): void {
    if (this.isDone) throw new TypeError("the stream cannot send any more");
  }
}

/** Header fields in short: `fields({ ":status": "200" })`. */
export function fields(
  record: Readonly<Record<string, string>>,
): HeaderField[] {
  return Object.entries(record).map(([name, value]) => ({ name, value }));
}
