/**
 * The options and the events of a connection: the types around `connection.ts`.
 * Pure data.
 *
 * @module
 */

import type { Clock } from "../sync/clock.ts";
import type { AbuseLimits, SharedLimits } from "./abuse_limits.ts";
import type { KeepaliveOptions } from "./keepalive.ts";
import type { ReceiveBudget } from "./receive_budget.ts";
import type { LocalSettings } from "./settings.ts";
import type { Stream, StreamEvents } from "./stream.ts";

/** Which end of HTTP/2 we are; independent of which end dialed. */
export type Role = "client" | "server";

/** How a connection ended. */
export interface ConnectionEnd {
  /** Set when it did not end in order. */
  readonly error?: Error | undefined;
  /** One sentence for people. */
  readonly reason: string;
  /** Error code of RFC 9113 §7 that was sent or received; 0 without one. */
  readonly code: number;
  /**
   * - `peer`: it sent GOAWAY and all streams have ended, or closed its side.
   * - `local`: we ended it: `shutdown`, `abort`, or because it broke a rule.
   * - `transport`: the connection broke, or the peer is silent.
   */
  readonly by: "peer" | "local" | "transport";
}

/** A GOAWAY of the peer's. */
export interface GoawayInfo {
  /** Our streams above this one were not processed; they get `refused`. */
  readonly lastStreamId: number;
  readonly code: number;
  /** Its debug data as text; for logs only. */
  readonly reason: string;
}

/** Events for the owner of a connection. Called synchronously. */
export interface ConnectionEvents {
  /**
   * Server role: a request has come; `onHeaders` follows at once. The stream
   * may already be answered or reset in here.
   */
  onStream(stream: Stream): StreamEvents;
  /** The peer's SETTINGS were applied: at the start and whenever they change. */
  onPeerSettings?(): void;
  /** The peer will take no new streams: make another connection. */
  onGoaway?(info: GoawayInfo): void;
  /** The answer to a PING is late (`doubtMs`), or something has come since. */
  onDoubt?(isDoubted: boolean): void;
  /**
   * The stream ids of this connection will soon be used up: make another and
   * `shutdown` this one. `isUsable` is false from now on.
   */
  onExhausted?(): void;
  /** It is over: no stream is left, none can be opened. Exactly once. */
  onClosed(end: ConnectionEnd): void;
}

/** What a connection is made of. */
export interface ConnectionOptions {
  readonly role: Role;
  readonly clock: Clock;
  readonly events: ConnectionEvents;
  readonly settings?: Partial<LocalSettings> | undefined;
  /** Without it a silent peer is never declared gone. */
  readonly keepalive?: KeepaliveOptions;
  readonly limits?: Partial<AbuseLimits> | undefined;
  /**
   * What all connections of the process may keep for slow readers; without it
   * this one has a budget of its own.
   */
  readonly receiveBudget?: ReceiveBudget | undefined;
  /** What the peer shares with others; without it nothing. */
  readonly sharedLimits?: SharedLimits | undefined;
  /** The first stream id of a client, 1 by default; odd. For tests of the end. */
  readonly firstStreamId?: number | undefined;
}

/** Thrown by `openStream` when no stream can be opened any more. */
export class ConnectionUnavailableError extends Error {
  override readonly name = "ConnectionUnavailableError";

  /** @param reason Why, as a clause. */
  constructor(reason: string) {
    super(`Cannot open a stream: ${reason}`);
  }
}
