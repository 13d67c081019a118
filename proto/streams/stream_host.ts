/**
 * What a stream needs of its connection: the seam that keeps `engine_stream.ts`
 * ignorant of everything that streams share.
 *
 * @module
 */

import type { ClosedHow } from "./closed_streams.ts";
import type { EngineStream } from "./engine_stream.ts";
import type { FrameWriter } from "./frame_writer.ts";
import type { WriteScheduler } from "./write_scheduler.ts";

/** See the module description. */
export interface StreamHost {
  readonly writer: FrameWriter;
  readonly scheduler: WriteScheduler;
  /** Where receive windows start, in octets. */
  readonly startWindow: number;
  /** Where send windows start: the peer's INITIAL_WINDOW_SIZE. */
  readonly peerStartWindow: number;
  /** Octets that one frame of any stream may carry now, by what is shared. */
  readonly room: number;
  /** A DATA frame of `octets` goes out: charges the connection. */
  sent(stream: EngineStream, octets: number): void;
  /** The stream can send and asks for a turn. */
  awaitRoom(stream: EngineStream): void;
  /** The first response head of a peer's stream goes out. */
  onAnswered(): void;
  onConsumed(stream: EngineStream, octets: number): void;
  onHalfUsed(stream: EngineStream): void;
  /** The stream is over: nothing is sent or expected on it any more. */
  onStreamClosed(stream: EngineStream, how: ClosedHow): void;
}
