/**
 * A stream with somebody listening to what is written to it.
 *
 * @module
 */

import type { Stream } from "../../net/stream/stream.ts";
import { StreamLayer } from "../../net/stream/stream_layer.ts";
import { FrameDecoder } from "../../proto/frames/frame_decoder.ts";
import { ErrorCode, errorCodeName } from "../../proto/frames/wire_error.ts";

const PREFACE_BYTES = 24;

/** The longest that a length in a frame's head can say. */
const FRAME_BYTES_MAX = 2 ** 24 - 1;

/** Ways to end a stream that accuse nobody. */
const PEACEFUL: ReadonlySet<number> = new Set([
  ErrorCode.NO_ERROR,
  ErrorCode.REFUSED_STREAM,
  ErrorCode.CANCEL,
]);

/** Options of {@linkcode tapped}. */
export interface TapOptions {
  /** The HTTP/2 client writes to it: the preface goes first. */
  readonly isClient: boolean;
  /** ENHANCE_YOUR_CALM is expected: memory is short on purpose. */
  readonly mayCalm: boolean;
  /** Called for frames that accuse the other end. */
  readonly complain: (what: string) => void;
}

/** `stream`, and its frames are looked at. */
export function tapped(stream: Stream, options: TapOptions): Stream {
  return new TappedStream(stream, options);
}

class TappedStream extends StreamLayer {
  readonly #frames = new FrameDecoder(FRAME_BYTES_MAX);
  /** Bytes to pass over before the first frame. */
  #preface: number;

  constructor(stream: Stream, private readonly options: TapOptions) {
    super(stream);
    this.#preface = options.isClient ? PREFACE_BYTES : 0;
  }

  override write(bytes: Uint8Array<ArrayBuffer>): number {
    const count = this.below.write(bytes);
    const skipped = Math.min(this.#preface, count);
    this.#preface -= skipped;
    this.#frames.push(bytes.subarray(skipped, count));
    for (
      let frame = this.#frames.next();
      frame !== undefined;
      frame = this.#frames.next()
    ) {
      if (frame.type !== "RST_STREAM" && frame.type !== "GOAWAY") continue;
      this.#onCode(frame.type, frame.errorCode);
    }
    return count;
  }

  #onCode(what: string, code: number): void {
    if (PEACEFUL.has(code)) return;
    const { mayCalm, complain } = this.options;
    if (mayCalm && code === ErrorCode.ENHANCE_YOUR_CALM) return;
    complain(`${what} with ${errorCodeName(code)}`);
  }
}
