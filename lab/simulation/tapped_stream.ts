/**
 * A stream with somebody listening to what is written to it.
 *
 * @module
 */

import type { Stream } from "../../net/stream/stream.ts";
import { StreamLayer } from "../../net/stream/stream_layer.ts";
import { ErrorCode, errorCodeName } from "../../proto/frames/wire_error.ts";

const FRAME_HEAD_BYTES = 9;
const PREFACE_BYTES = 24;
const RST_STREAM = 3;
const GOAWAY = 7;

/** What both of them need: GOAWAY has a stream id in front of its code. */
const PAYLOAD_BYTES_KEPT = 8;

/** Ways to end a stream that accuse nobody. */
const PEACEFUL: ReadonlySet<number> = new Set([
  ErrorCode.NO_ERROR,
  ErrorCode.REFUSED_STREAM,
  ErrorCode.CANCEL,
]);

class FrameTap {
  readonly #head = new Uint8Array(FRAME_HEAD_BYTES + PAYLOAD_BYTES_KEPT);
  #headBytes = 0;
  /** Bytes to pass over before the next frame. */
  #skip: number;

  /**
   * @param isClient The preface goes first.
   * @param mayCalm ENHANCE_YOUR_CALM is expected: memory is short on purpose.
   */
  constructor(
    isClient: boolean,
    readonly mayCalm: boolean,
    private readonly complain: (what: string) => void,
  ) {
    this.#skip = isClient ? PREFACE_BYTES : 0;
  }

  /** Takes what is sent. */
  push(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const skipped = Math.min(this.#skip, bytes.length - at);
      this.#skip -= skipped;
      at += skipped;
      if (this.#skip === 0 && at < bytes.length) {
        at += this.#gather(bytes.subarray(at));
      }
    }
  }

  #gather(bytes: Uint8Array): number {
    const head = this.#head;
    const wanted = this.#wantedBytes - this.#headBytes;
    const taken = Math.min(wanted, bytes.length);
    head.set(bytes.subarray(0, taken), this.#headBytes);
    this.#headBytes += taken;
    if (this.#headBytes === this.#wantedBytes) this.#onFrame();
    return taken;
  }

  /** The head, and with it the payload of the two kinds that are looked at. */
  get #wantedBytes(): number {
    if (this.#headBytes < FRAME_HEAD_BYTES) return FRAME_HEAD_BYTES;
    switch (this.#head[3]) {
      case RST_STREAM:
        return FRAME_HEAD_BYTES + 4;
      case GOAWAY:
        return FRAME_HEAD_BYTES + 8;
      default:
        return FRAME_HEAD_BYTES;
    }
  }

  #onFrame(): void {
    const view = new DataView(this.#head.buffer);
    const type = view.getUint8(3);
    const payloadBytes = view.getUint32(0) >>> 8;
    const kept = this.#headBytes - FRAME_HEAD_BYTES;
    this.#skip = payloadBytes - kept;
    this.#headBytes = 0;
    if (type === RST_STREAM) this.#onCode("RST_STREAM", view.getUint32(9));
    if (type === GOAWAY) this.#onCode("GOAWAY", view.getUint32(13));
  }

  #onCode(what: string, code: number): void {
    if (PEACEFUL.has(code)) return;
    if (this.mayCalm && code === ErrorCode.ENHANCE_YOUR_CALM) return;
    this.complain(`${what} with ${errorCodeName(code)}`);
  }
}

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
