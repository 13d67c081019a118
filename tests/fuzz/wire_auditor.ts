/**
 * Reads what our engine sends as a strict peer would: legal frames, header
 * blocks in one piece that decode, nothing behind GOAWAY's last stream.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import { type Frame, MAX_FRAME_SIZE_MAX } from "../../proto/frames/frame.ts";
import { FrameDecoder } from "../../proto/frames/frame_decoder.ts";
import { HpackDecoder } from "../../proto/hpack/decoder.ts";
import type { Connection } from "../../proto/streams/connection.ts";
import type { Role } from "../../proto/streams/connection_events.ts";
import { concatenate } from "./mutators.ts";

const PREFACE_OCTETS = 24;

/** Octets sent beyond those received: our own opening, GOAWAY with a reason. */
const OUTPUT_OCTETS_FREE = 3000;

/** The dearest is a request of ten octets, answered with head and trailers. */
const OUTPUT_OCTETS_PER_OCTET = 10;

/** See the module description. */
export class WireAuditor {
  readonly #decoder = new FrameDecoder(MAX_FRAME_SIZE_MAX);
  readonly #hpack = new HpackDecoder();
  /** Streams on which we have said END_STREAM or RST_STREAM. */
  readonly #ended = new Set<number>();
  #prefaceLeft: number;
  #block: Uint8Array[] | undefined;
  #isFirstFrame = true;
  #octets = 0;

  /** @param role Of the engine whose output this is. */
  constructor(role: Role) {
    this.#prefaceLeft = role === "client" ? PREFACE_OCTETS : 0;
  }

  /**
   * Takes all output of `connection`, which has received so many octets.
   *
   * @throws {Error} If it is illegal, or much more than what came in.
   */
  drain(connection: Connection, receivedOctets: number): void {
    for (;;) {
      const batch = connection.takeOutput();
      if (batch === undefined) break;
      this.push(batch);
      connection.outputWritten();
    }
    const octetsMax = OUTPUT_OCTETS_FREE +
      OUTPUT_OCTETS_PER_OCTET * receivedOctets;
    assert(
      this.#octets <= octetsMax,
      `${this.#octets} octets were sent for ${receivedOctets}`,
    );
  }

  /** @throws {Error} If the next octets are not what may be sent. */
  push(octets: Uint8Array): void {
    this.#octets += octets.length;
    const skipped = Math.min(this.#prefaceLeft, octets.length);
    this.#prefaceLeft -= skipped;
    this.#decoder.push(octets.subarray(skipped));
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
    if (endHeaders) this.#hpack.decode(concatenate(block));
  }
}
