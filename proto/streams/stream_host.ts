/**
 * What a stream needs of its connection: the seam that keeps `engine_stream.ts`
 * ignorant of everything that streams share.
 *
 * @module
 */

import type { ClosedHow } from "./closed_streams.ts";
import type { EngineStream } from "./engine_stream.ts";
import type { SendingSide } from "./sending_side.ts";

/** See the module description. */
export interface StreamHost {
  readonly sending: SendingSide;
  /** Where receive windows start, in octets. */
  readonly startWindow: number;
  /** Where send windows start: the peer's INITIAL_WINDOW_SIZE. */
  peerStartWindow(): number;
  /** The first response head of a peer's stream goes out. */
  onAnswered(): void;
  onConsumed(stream: EngineStream, octets: number): void;
  onHalfUsed(stream: EngineStream): void;
  /** The stream is over: nothing is sent or expected on it any more. */
  onStreamClosed(stream: EngineStream, how: ClosedHow): void;
}
