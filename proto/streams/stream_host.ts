/**
 * What streams and the receivers of frames need of their connection: the seams
 * that keep them ignorant of everything that streams share, and of how a
 * connection lives and ends.
 *
 * @module
 */

import type { ClosedHow, StreamTable } from "./stream_table.ts";
import type { EngineStream } from "./engine_stream.ts";
import type { HeaderField } from "../hpack/header_field.ts";
import type { ReceivingSide } from "./receiving_side.ts";
import type { SendingSide } from "./sending_side.ts";
import type { GoawayFrame, Setting } from "../frames/frame.ts";
import type { WireError } from "../frames/wire_error.ts";
import type { AbuseGuard, SharedLimits } from "./abuse_limits.ts";
import type { Role } from "./connection_events.ts";
import type { SectionFacts } from "./header_sections.ts";
import type { BulkSense } from "./bulk_sense.ts";

export interface StreamHost {
  readonly sending: SendingSide;
  readonly receiving: ReceivingSide;
  /** The initial receive window of an own stream, or of a peer's. */
  startWindow(isOwn: boolean): number;
  /** The initial send window: the peer's INITIAL_WINDOW_SIZE. */
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

// What the receivers of frames need of their connection: the seam that keeps
// them ignorant of how it lives and ends.

export interface ReceiverHost {
  readonly role: Role;
  readonly streams: StreamTable;
  readonly sending: SendingSide;
  readonly receiving: ReceivingSide;
  readonly guard: AbuseGuard;
  readonly shared: SharedLimits;
  readonly bulk: BulkSense<EngineStream>;
  /** True once nothing more is to be read. */
  isClosed(): boolean;
  /** Streams of the peer's above this id are ignored (we sent GOAWAY). */
  peerIdMax(): number;
  /** When the running call of `receive` began. */
  nowMs(): number;
  onRequest(
    streamId: number,
    fields: readonly HeaderField[],
    endStream: boolean,
    facts: SectionFacts,
  ): void;
  onSettings(settings: readonly Setting[]): void;
  onSettingsAck(): void;
  onPing(): void;
  onPingAck(opaque: Uint8Array): void;
  onGoaway(frame: GoawayFrame): void;
  /** The peer broke a rule that costs the connection. */
  onError(error: WireError): void;
}
