/**
 * What a stream needs of its connection: the seam that keeps `engine_stream.ts`
 * ignorant of everything that streams share.
 *
 * @module
 */

import type { ClosedHow } from "./closed_streams.ts";
import type { EngineStream } from "./engine_stream.ts";
import type { HeaderField } from "../hpack/header_field.ts";
import type { ReceivingSide } from "./receiving_side.ts";
import type { SendingSide } from "./sending_side.ts";

export interface StreamHost {
  readonly sending: SendingSide;
  readonly receiving: ReceivingSide;
  /** Where the receive window of an own stream, or of a peer's, starts. */
  startWindow(isOwn: boolean): number;
  /** Where send windows start: the peer's INITIAL_WINDOW_SIZE. */
  peerStartWindow(): number;
  /** Why the peer would not take such a header section, if so (§10.5.1). */
  problemOfHeaders(fields: readonly HeaderField[]): string | undefined;
  /** The first response head of a peer's stream goes out. */
  onAnswered(): void;
  /** Nothing is sent or expected on the stream any more: forget it. */
  onStreamClosed(stream: EngineStream, how: ClosedHow): void;
  /**
   * The handlers are notified too: another stream may open, or the connection
   * end. Apart from `onStreamClosed`, so that no stream gets its end behind the
   * connection's.
   */
  onStreamOver(): void;
}
