/**
 * A stream with somebody listening to what is written to it.
 *
 * @module
 */

import type { Stream } from "../../net/stream/stream.ts";
import { StreamLayer } from "../../net/stream/stream_layer.ts";
import { FrameTap } from "./frame_tap.ts";

/** Options of {@linkcode tapped}. */
export interface TapOptions {
  /** The HTTP/2 client writes to it. */
  readonly isClient: boolean;
  /** See `FrameTap`. */
  readonly mayCalm: boolean;
  /** Called for frames that accuse the other end. */
  readonly complain: (what: string) => void;
}

/** `stream`, and its frames are looked at. */
export function tapped(stream: Stream, options: TapOptions): Stream {
  return new TappedStream(stream, options);
}

class TappedStream extends StreamLayer {
  readonly #tap: FrameTap;

  constructor(stream: Stream, { isClient, mayCalm, complain }: TapOptions) {
    super(stream);
    this.#tap = new FrameTap(isClient, mayCalm, complain);
  }

  override write(bytes: Uint8Array<ArrayBuffer>): number {
    const count = this.below.write(bytes);
    this.#tap.push(bytes.subarray(0, count));
    return count;
  }
}
