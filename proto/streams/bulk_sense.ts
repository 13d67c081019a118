/**
 * Which streams move in bulk now, in either direction.
 *
 * No frame declares the use of a stream, so its traffic decides: each
 * WINDOW_UPDATE means that half of a window was moved, or 256 KiB (one of ours:
 * we received them; of the peer's: it did). These fill a leaky bucket per
 * stream; a stream that keeps its bucket full is in bulk. An interactive one,
 * and a single answer of some size, do not fill it, and streams that are idle
 * are not in the table.
 *
 * @module
 */

import { UPDATE_BYTES_MAX } from "./flow_window.ts";

/** A full bucket: a stream that moved so much faster than it leaks is bulk. */
export const BULK_BYTES: number = 128 * 1024;

/** What leaks: below 1 Mbit/s a stream disturbs hardly any line. */
export const LEAK_BYTES_PER_S: number = 128 * 1024;

/**
 * No bucket holds more. A full one lasts until the next WINDOW_UPDATE of a
 * stream that keeps it full, and a stream that stops is no longer bulk after
 * two seconds.
 */
const BUCKET_BYTES_MAX: number = BULK_BYTES + UPDATE_BYTES_MAX;

const MS_PER_S = 1000;

interface Bucket {
  bytes: number;
  atMs: number;
}

/** `S` is the key of a stream. */
export class BulkSense<S> {
  /** Made with the first one: most connections never move that much. */
  #buckets: Map<S, Bucket> | undefined;

  /** `stream` has moved `bytes`, by a WINDOW_UPDATE. */
  moved(stream: S, bytes: number, nowMs: number): void {
    const buckets = this.#buckets ??= new Map();
    const bucket = buckets.get(stream);
    if (bucket === undefined) {
      buckets.set(stream, { bytes: capped(bytes), atMs: nowMs });
      return;
    }
    bucket.bytes = capped(leaked(bucket, nowMs) + bytes);
    bucket.atMs = nowMs;
  }

  /** `stream` is over. */
  forget(stream: S): void {
    this.#buckets?.delete(stream);
  }

  /** How many are in bulk. Goes through those that moved something of late. */
  count(nowMs: number): number {
    const buckets = this.#buckets;
    if (buckets === undefined) return 0;
    let count = 0;
    for (const [stream, bucket] of buckets) {
      const bytes = leaked(bucket, nowMs);
      if (bytes >= BULK_BYTES) count++;
      else if (bytes === 0) buckets.delete(stream);
    }
    return count;
  }
}

function leaked({ bytes, atMs }: Bucket, nowMs: number): number {
  const leakedBytes = (nowMs - atMs) * LEAK_BYTES_PER_S / MS_PER_S;
  return Math.max(0, bytes - leakedBytes);
}

function capped(bytes: number): number {
  return Math.min(bytes, BUCKET_BYTES_MAX);
}
