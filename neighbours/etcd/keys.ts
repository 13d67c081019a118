/**
 * Keys of etcd as text, and which keys a prefix means.
 *
 * @module
 */

import type { KeyValue } from "./etcd_messages.ts";

/**
 * 64-bit values (lease ids, revisions, the cluster's id), in decimal, because a
 * number cannot hold a lease id.
 */
export type Int64Text = string;

/** One key as it was read. */
export interface Entry {
  readonly key: string;
  readonly value: Uint8Array;
  /** The store's revision at the last write of the key. */
  readonly modRevision: bigint;
  /** The lease that it dies with; "0": none. */
  readonly lease: string;
}

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

export function bytesOf(text: string): Uint8Array {
  return ENCODER.encode(text);
}

/** Invalid UTF-8 is shown as U+FFFD: such keys are not ours. */
export function entryOf(kv: KeyValue): Entry {
  return {
    key: DECODER.decode(kv.key),
    value: kv.value,
    modRevision: BigInt(kv.modRevision),
    lease: kv.lease,
  };
}

/**
 * The first key after all keys with `prefix`, as etcd's clients compute it: the
 * last byte that can be raised is raised, and the rest is dropped.
 *
 * @returns `\0`, which means "to the end", when there is no such key.
 */
export function prefixEnd(prefix: Uint8Array): Uint8Array {
  const last = prefix.findLastIndex((byte) => byte < 0xff);
  if (last < 0) return Uint8Array.of(0);
  const end = prefix.slice(0, last + 1);
  end[last]! += 1;
  return end;
}
