/**
 * What the receivers of frames need of their connection: the seam that keeps
 * them ignorant of how it lives and ends.
 *
 * @module
 */

import type { GoawayFrame, Setting } from "../frames/frame.ts";
import type { WireError } from "../frames/wire_error.ts";
import type { HeaderField } from "../hpack/header_field.ts";
import type { AbuseGuard } from "./abuse_limits.ts";
import type { Role } from "./connection_events.ts";
import type { SectionFacts } from "./header_sections.ts";
import type { BulkSense } from "./bulk_sense.ts";
import type { EngineStream } from "./engine_stream.ts";
import type { ReceivingSide } from "./receiving_side.ts";
import type { SharedLimits } from "./shared_limits.ts";
import type { SendingSide } from "./sending_side.ts";
import type { StreamTable } from "./stream_table.ts";

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
