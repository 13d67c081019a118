/**
 * What one node may have of discovery: streams, kinds of client, bytes that the
 * server keeps for it, and time in which its requests are read. All that is
 * somebody's at a cost to everybody is counted by who answers for it, so a node
 * that overdoes it, or a program on it, takes nothing but its own share.
 *
 * Who is on the server's own machine, or is nobody's node, has a share too.
 *
 * @module
 */

import { GrpcError, StatusCode } from "../../../proto/grpc/status.ts";
import {
  type BucketSize,
  TokenBucket,
} from "../../../proto/streams/token_bucket.ts";
import type { Clock } from "../../../proto/sync/clock.ts";

/** What a share is at most. */
export interface ShareLimits {
  readonly streams: number;
  /**
   * Audiences that its clients may be at once. Each is a view of the whole
   * catalog, and clients say themselves which they are: by zone, form, proxy.
   */
  readonly audiences: number;
  /** New ones of them: somebody has to make each view. */
  readonly newAudiences: BucketSize;
  /** Bytes of names, metadata and unfinished requests. */
  readonly bytes: number;
  /** Milliseconds for its requests; then they wait. */
  readonly work: BucketSize;
  /** Lines of the log about it. */
  readonly lines: BucketSize;
}

/** Of a node: each program that it relays has a stream, or one for each kind. */
export const NODE_LIMITS: ShareLimits = {
  streams: 2_048,
  audiences: 16,
  newAudiences: { burst: 32, perSecond: 0.1 },
  bytes: 128 * 1_024 * 1_024,
  work: { burst: 2_000, perSecond: 250 },
  lines: { burst: 1_000, perSecond: 1 },
};

/** Of programs on the server's machine, which can do worse to it. */
export const OPEN_LIMITS: ShareLimits = {
  streams: Infinity,
  audiences: 256,
  newAudiences: { burst: 1_024, perSecond: 10 },
  bytes: 1_024 * 1_024 * 1_024,
  work: { burst: Infinity, perSecond: 0 },
  lines: { burst: 10_000, perSecond: 10 },
};

/** What is charged in advance when a stream whose requests waited goes on. */
export const RESUMED_WORK_MS = 20;

/** See the module description. */
export class Share {
  readonly #clock: Clock;
  readonly #limits: ShareLimits;
  readonly #work: TokenBucket;
  readonly #newAudiences: TokenBucket;
  readonly #lines: TokenBucket;
  #isSilent = false;
  /** By key: how many streams are of that audience. */
  readonly #audiences = new Map<string, number>();
  #streams = 0;
  #bytes = 0;

  /** @param name Whose it is, for sentences. */
  constructor(readonly name: string, limits: ShareLimits, clock: Clock) {
    this.#clock = clock;
    this.#limits = limits;
    this.#work = new TokenBucket(limits.work, clock.now());
    this.#newAudiences = new TokenBucket(limits.newAudiences, clock.now());
    this.#lines = new TokenBucket(limits.lines, clock.now());
  }

  get streams(): number {
    return this.#streams;
  }

  /** What is kept for it. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @throws {GrpcError} RESOURCE_EXHAUSTED. */
  enter(): void {
    if (this.#streams >= this.#limits.streams) {
      throw tooMuch(this.name, `${this.#streams} discovery streams`);
    }
    this.#streams++;
  }

  leave(): void {
    this.#streams--;
  }

  /**
   * A stream is of an audience from now on.
   *
   * @param isKnown Somebody else is of it already.
   * @throws {GrpcError} RESOURCE_EXHAUSTED.
   */
  takeAudience(key: string, isKnown: boolean): void {
    const count = this.#audiences.get(key) ?? 0;
    if (count === 0) {
      if (this.#audiences.size >= this.#limits.audiences) {
        const what = `${this.#audiences.size} kinds of client at once (zone, ` +
          "form, proxy)";
        throw tooMuch(this.name, what);
      }
      if (!isKnown && !this.#newAudiences.spend(this.#clock.now())) {
        throw tooMuch(
          this.name,
          "ever new kinds of client (zone, form, proxy)",
        );
      }
    }
    this.#audiences.set(key, count + 1);
  }

  /** A stream is of another audience, and it is not its doing. */
  moveAudience(before: string, after: string): void {
    this.giveAudience(before);
    this.#audiences.set(after, (this.#audiences.get(after) ?? 0) + 1);
  }

  giveAudience(key: string): void {
    const count = this.#audiences.get(key) ?? 0;
    if (count > 1) this.#audiences.set(key, count - 1);
    else this.#audiences.delete(key);
  }

  /**
   * So many bytes more are kept, or less.
   *
   * @throws {GrpcError} RESOURCE_EXHAUSTED; they count all the same.
   */
  keep(bytes: number): void {
    this.#bytes += bytes;
    if (bytes <= 0 || this.#bytes <= this.#limits.bytes) return;
    throw tooMuch(this.name, `${this.#bytes} bytes of requests to be kept`);
  }

  /**
   * Whether a line about it may be written: who joins and leaves all day, or
   * refuses all that it is told, fills no disk.
   *
   * @returns `no more`: instead of it, that others are left out.
   */
  get line(): "one" | "no more" | "none" {
    if (this.#lines.spend(this.#clock.now())) {
      this.#isSilent = false;
      return "one";
    }
    if (this.#isSilent) return "none";
    this.#isSilent = true;
    return "no more";
  }

  /** Its requests took so long to read and to answer. */
  worked(tookMs: number): void {
    if (tookMs > 0) this.#work.refund(-tookMs);
  }

  /** Whether more of its requests may be read now. */
  get mayGoOn(): boolean {
    return this.#work.spend(this.#clock.now(), 0);
  }
}

function tooMuch(name: string, what: string): GrpcError {
  return new GrpcError(
    StatusCode.RESOURCE_EXHAUSTED,
    `Cannot serve more discovery to ${name}: it has ${what}, and no node may ` +
      "have more",
  );
}
