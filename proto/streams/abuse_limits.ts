/**
 * What a peer may do often, and how often (RFC 9113 §10.5).
 *
 * Every frame here is legal once and an attack in masses: it costs the sender
 * nothing and us work or memory. Each kind has a budget that fills with time
 * and with the useful traffic that such frames honestly go along with; a peer
 * that exhausts one is sent ENHANCE_YOUR_CALM and the connection ends.
 *
 * @module
 */

import { ErrorCode, WireError } from "../frames/wire_error.ts";
import { type BucketSize, TokenBucket } from "./token_bucket.ts";

/** Everything a peer can make grow or repeat on one connection. */
export interface AbuseLimits {
  /** Longest coded header block over HEADERS and CONTINUATION, in bytes. */
  readonly headerBlockBytesMax: number;
  /** Most frames that one header block may be cut into. */
  readonly headerBlockFramesMax: number;
  /** Control bytes (not DATA) that may wait for a peer that does not read. */
  readonly controlBytesMax: number;
  /** PING without ACK; each DATA frame of either side gives one back. */
  readonly pings: BucketSize;
  /** SETTINGS without ACK. */
  readonly settings: BucketSize;
  /**
   * DATA with neither bytes nor END_STREAM costs a token; DATA with bytes gives
   * one back.
   */
  readonly emptyData: BucketSize;
  /** Streams opened and reset before an answer; an answered one gives back. */
  readonly resets: BucketSize;
  /** Errors of the peer's that cost a stream, answered or not. */
  readonly streamErrors: BucketSize;
  /** WINDOW_UPDATE below {@linkcode TINY_INCREMENT_BYTES}. */
  readonly tinyUpdates: BucketSize;
  /**
   * Frames without effect: PRIORITY, unknown, for closed streams, stray ACK,
   * GOAWAY.
   * Each stream that closes gives some back, for what crosses its end.
   */
  readonly idleFrames: BucketSize;
}

/** Smaller increments than this let a peer make us send DATA by the byte. */
export const TINY_INCREMENT_BYTES = 1024;

/**
 * Entries in one SETTINGS. RFC 9113 names six, extensions a handful more; a
 * frame has room for 2,730, each of which is looked at.
 */
export const SETTINGS_ENTRIES_MAX = 64;

/** The limits unless the caller chooses others. */
export const CONNECTION_LIMITS_DEFAULT: AbuseLimits = {
  // Twice the default header list: coding makes blocks shorter, hardly longer.
  headerBlockBytesMax: 128 * 1024,
  // CVE-2024-27316: 128 KiB in frames of 16 KiB are 8. Eight times as many
  // let a peer use 2 KiB fragments and stop one that uses empty ones.
  headerBlockFramesMax: 64,
  // CVE-2019-9512, 9515: replies to a peer that never reads. A thousand
  // response heads of 2 KiB fit; an honest peer reads long before that.
  controlBytesMax: 2 * 1024 * 1024,
  // CVE-2019-9512. grpc-go measures bandwidth with one PING per round trip, and
  // so do we: on loopback thousands per second, but only while DATA flows.
  pings: { burst: 1000, perSecond: 100 },
  // CVE-2019-9515. Honest peers change settings a few times per connection.
  settings: { burst: 100, perSecond: 10 },
  // CVE-2019-9518. Each costs a header and moves nothing.
  emptyData: { burst: 1000, perSecond: 100 },
  // CVE-2023-44487 (rapid reset) and CVE-2025-8671 (making us reset): work is
  // started per stream while the concurrency limit never bites. A client may
  // honestly cancel all its open calls at once, hence the burst.
  resets: { burst: 1000, perSecond: 100 },
  // CVE-2025-8671 behind an answer, which gives its reset back: DATA behind
  // END_STREAM, say, each piece of which is an RST_STREAM of ours.
  streamErrors: { burst: 1000, perSecond: 100 },
  // CVE-2019-9511 and 9517: the window opened by a few bytes at a time.
  tinyUpdates: { burst: 1000, perSecond: 100 },
  // CVE-2019-9513 and 9516 (priority churn, empty frames of other types).
  idleFrames: { burst: 2000, perSecond: 200 },
};

/** The kinds that have a budget. */
type AbuseKind =
  | "pings"
  | "settings"
  | "emptyData"
  | "resets"
  | "streamErrors"
  | "tinyUpdates"
  | "idleFrames";

/** All that a peer can overdo. */
export type Excess = AbuseKind | "headerBlock" | "controlBytes" | "shared";

/** The peer overdid what is legal: ENHANCE_YOUR_CALM. */
export class ExcessError extends WireError {
  /** @param what Was seen and wanted, as a clause. */
  constructor(readonly excess: Excess, what: string, section = "10.5") {
    super(
      ErrorCode.ENHANCE_YOUR_CALM,
      section,
      `Cannot go on with the peer: ${what}`,
    );
  }
}

/** The budgets of one connection. */
export class AbuseGuard {
  /** Full until something is taken, and made then: most never are. */
  readonly #buckets: Record<AbuseKind, TokenBucket | undefined> = {
    pings: undefined,
    settings: undefined,
    emptyData: undefined,
    resets: undefined,
    streamErrors: undefined,
    tinyUpdates: undefined,
    idleFrames: undefined,
  };

  constructor(private readonly limits: AbuseLimits) {}

  /**
   * Counts one event of `kind`.
   *
   * @throws {WireError} ENHANCE_YOUR_CALM when its budget is used up.
   */
  count(kind: AbuseKind, nowMs: number): void {
    const bucket = this.#buckets[kind] ??= new TokenBucket(
      this.limits[kind],
      nowMs,
    );
    if (bucket.spend(nowMs)) return;
    const { burst, perSecond } = this.limits[kind];
    throw new ExcessError(
      kind,
      `too many ${kind}, wanted at most ${burst} at once and ${perSecond} per second`,
    );
  }

  /** Something useful happened that such events go along with. */
  refund(kind: AbuseKind, tokens = 1): void {
    this.#buckets[kind]?.refund(tokens);
  }

  /** @throws {WireError} When more control bytes wait than may. */
  checkControlBytes(bytes: number): void {
    const { controlBytesMax } = this.limits;
    if (bytes <= controlBytesMax) return;
    throw new ExcessError(
      "controlBytes",
      `${bytes} bytes of replies wait for it, wanted at most ${controlBytesMax}`,
    );
  }
}

// The limits that a connection shares with others: those of its source, and
// those of the whole process.
//
// The limits of one connection (`abuse_limits.ts`) do not bound a peer that
// opens many. The owner of the connections decides which of them share what;
// the engine asks before it takes something, and returns it later.

export interface SharedLimits {
  /** The peer opens a stream. @returns false: refuse it, it is not counted. */
  takeStream(): boolean;
  giveStream(): void;
  /** Bytes of a head that is not complete. @returns false: not counted. */
  takeHeaderBytes(bytes: number): boolean;
  giveHeaderBytes(bytes: number): void;
  /** A stream was begun and thrown away. @returns false: once too often. */
  takeReset(): boolean;
  /** The connection was ended because its peer broke a rule. */
  fault?(): void;
}

/** For connections without shared limits. */
export const UNSHARED: SharedLimits = {
  takeStream: () => true,
  giveStream() {},
  takeHeaderBytes: () => true,
  giveHeaderBytes() {},
  takeReset: () => true,
};
