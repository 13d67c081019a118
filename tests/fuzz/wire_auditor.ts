/**
 * Reads what our engine sends as a strict peer would: legal frames, header
 * blocks in one piece that decode, nothing behind GOAWAY's last stream.
 *
 * @module
 */

import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import { assert, assertEquals } from "@std/assert";
import { type Frame, MAX_FRAME_SIZE_MAX } from "../../proto/frames/frame.ts";
import { FrameDecoder } from "../../proto/frames/frame_decoder.ts";
import { HpackDecoder } from "../../proto/hpack/decoder.ts";
import type { Connection } from "../../proto/streams/connection.ts";
import type { Role } from "../../proto/streams/connection_events.ts";

const PREFACE_BYTES = 24;

/** Bytes sent beyond those received: our own opening, GOAWAY with a reason. */
const OUTPUT_BYTES_FREE = 3000;

/** The dearest is a request of ten bytes, answered with head and trailers. */
const OUTPUT_BYTES_PER_BYTE = 10;

/** See the module description. */
export class WireAuditor {
  readonly #decoder = new FrameDecoder(MAX_FRAME_SIZE_MAX);
  readonly #hpack = new HpackDecoder();
  /** Streams on which we have said END_STREAM or RST_STREAM. */
  readonly #ended = new Set<number>();
  #prefaceLeft: number;
  #block: Uint8Array[] | undefined;
  #isFirstFrame = true;
  #bytes = 0;

  /** @param role Of the engine whose output this is. */
  constructor(role: Role) {
    this.#prefaceLeft = role === "client" ? PREFACE_BYTES : 0;
  }

  /**
   * Takes all output of `connection`, which has received so many bytes.
   *
   * @throws {Error} If it is illegal, or much more than what came in.
   */
  drain(connection: Connection, receivedBytes: number): void {
    for (;;) {
      const batch = connection.takeOutput();
      if (batch === undefined) break;
      this.push(batch);
      connection.outputWritten();
    }
    const bytesMax = OUTPUT_BYTES_FREE +
      OUTPUT_BYTES_PER_BYTE * receivedBytes;
    assert(
      this.#bytes <= bytesMax,
      `${this.#bytes} bytes were sent for ${receivedBytes}`,
    );
  }

  /** @throws {Error} If the next bytes are not what may be sent. */
  push(bytes: Uint8Array): void {
    this.#bytes += bytes.length;
    const skipped = Math.min(this.#prefaceLeft, bytes.length);
    this.#prefaceLeft -= skipped;
    this.#decoder.push(bytes.subarray(skipped));
    for (;;) {
      const frame = this.#decoder.next();
      if (frame === undefined) return;
      this.#check(frame);
    }
  }

  #check(frame: Frame): void {
    // RFC 9113 §3.4: SETTINGS is the first frame of either end.
    if (this.#isFirstFrame) assertEquals(frame.type, "SETTINGS");
    this.#isFirstFrame = false;
    // §6.10: nothing may stand inside a header block.
    const isInsideBlock = this.#block !== undefined;
    assertEquals(frame.type === "CONTINUATION", isInsideBlock);
    if (frame.type === "DATA" || frame.type === "HEADERS") {
      // §5.1: behind our END_STREAM or RST_STREAM we send neither.
      assert(!this.#ended.has(frame.streamId), `${frame.type} behind the end`);
      if (frame.endStream) this.#ended.add(frame.streamId);
    }
    if (frame.type === "RST_STREAM") this.#ended.add(frame.streamId);
    if (frame.type === "HEADERS" || frame.type === "CONTINUATION") {
      this.#gather(frame.fragment, frame.endHeaders);
    }
  }

  #gather(fragment: Uint8Array, endHeaders: boolean): void {
    const block = [...this.#block ?? [], fragment.slice()];
    this.#block = endHeaders ? undefined : block;
    if (endHeaders) this.#hpack.decode(joinedBytes(block));
  }
}
