/**
 * How often a source without a certificate may try to get one.
 *
 * A secret of 128 bits cannot be guessed; this limits what the attempts cost
 * the server (a signature to check, a key to sign with, files to write). Each
 * source has a bucket of its own, and all together share one more, because an
 * attacker can have many sources.
 *
 * @module
 */

import { sourceOf } from "../../net/admission/source.ts";
import { TokenBucket } from "../../proto/streams/token_bucket.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import { setNewest } from "../../proto/sync/newest.ts";
import { createHmac, timingSafeEqual } from "node:crypto";

/** A network address translator may hide a hundred nodes that join at once. */
export const ATTEMPTS_BURST = 100;
const ATTEMPTS_PER_SECOND = 10;
/** What an attempt that was refused costs, in attempts. */
export const REFUSED_ATTEMPT_COST = 10;
/** Limit for all sources together. */
export const ALL_ATTEMPTS_BURST = 1_000;
const ALL_ATTEMPTS_PER_SECOND = 200;
/** Limit on remembered sources; the quietest is forgotten first. */
export const ATTEMPT_SOURCES_MAX = 4_096;

/** Limit for a node that renews by its certificate, which costs the same. */
export const RENEWALS_BURST = 1_000;

/** Limits attempts, of one source and of all together. */
export class JoinAttempts {
  readonly #all: TokenBucket;
  /** Least recently seen first: a `Map` keeps the order of insertion. */
  readonly #sources = new Map<string, TokenBucket>();

  /** @param burst What a source may do at once. */
  constructor(
    private readonly clock: Clock,
    private readonly burst: number = ATTEMPTS_BURST,
  ) {
    const all = {
      burst: ALL_ATTEMPTS_BURST,
      perSecond: ALL_ATTEMPTS_PER_SECOND,
    };
    this.#all = new TokenBucket(all, clock.now());
  }

  /** How many sources are remembered. */
  get sources(): number {
    return this.#sources.size;
  }

  /**
   * Counts an attempt.
   *
   * @param remoteAddress `ip:port`, or the name of a node.
   * @returns 0 when it may go on, or after how many milliseconds to try again.
   */
  begin(remoteAddress: string): number {
    const nowMs = this.clock.now();
    const bucket = this.#bucketOf(remoteAddress, nowMs);
    const waitMs = Math.max(bucket.waitMs(nowMs), this.#all.waitMs(nowMs));
    if (waitMs > 0) return waitMs;
    bucket.spend(nowMs);
    this.#all.spend(nowMs);
    return 0;
  }

  /** The attempt that was begun was refused. */
  refused(remoteAddress: string): void {
    // May go below zero: a refused source waits longer.
    this.#bucketOf(remoteAddress, this.clock.now())
      .refund(1 - REFUSED_ATTEMPT_COST);
  }

  #bucketOf(remoteAddress: string, nowMs: number): TokenBucket {
    const source = sourceOf(remoteAddress);
    const bucket = this.#sources.get(source) ??
      new TokenBucket(
        { burst: this.burst, perSecond: ATTEMPTS_PER_SECOND },
        nowMs,
      );
    setNewest(this.#sources, source, bucket, ATTEMPT_SOURCES_MAX);
    return bucket;
  }
}

// Nonces for renewals by proof. They are not remembered but recognised: each
// contains when it was made, under a MAC that also covers for which source.

/** Long enough for a slow node to sign, too short to carry elsewhere. */
export const CHALLENGE_VALID_MS = 60_000;

const TIME_BYTES = 8;
const MAC_BYTES = 32;

/** Makes and checks nonces. */
export class Challenges {
  /**
   * Kept in this process only: after a restart nodes must ask again, which is
   * harmless.
   */
  readonly #key = crypto.getRandomValues(new Uint8Array(32));

  constructor(private readonly clock: Clock) {}

  /** A nonce for a caller at `remoteAddress`. */
  make(remoteAddress: string): Uint8Array<ArrayBuffer> {
    const nonce = new Uint8Array(TIME_BYTES + MAC_BYTES);
    new DataView(nonce.buffer).setFloat64(0, this.clock.now());
    nonce.set(
      this.#mac(nonce.subarray(0, TIME_BYTES), remoteAddress),
      TIME_BYTES,
    );
    return nonce;
  }

  /** Whether a nonce is ours, for this caller, and still fresh. */
  isGood(nonce: Uint8Array, remoteAddress: string): boolean {
    if (nonce.length !== TIME_BYTES + MAC_BYTES) return false;
    const time = nonce.subarray(0, TIME_BYTES);
    const mac = this.#mac(time, remoteAddress);
    if (!timingSafeEqual(mac, nonce.subarray(TIME_BYTES))) return false;
    const madeMs = new DataView(nonce.buffer, nonce.byteOffset).getFloat64(0);
    return this.clock.now() - madeMs < CHALLENGE_VALID_MS;
  }

  #mac(time: Uint8Array, remoteAddress: string) {
    return createHmac("sha256", this.#key)
      .update(time).update(sourceOf(remoteAddress)).digest();
  }
}
