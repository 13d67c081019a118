/**
 * Two memory connections that are joined in the middle: left ⇄ (a transfer b) ⇄
 * right. The test owns both outer ends.
 *
 * @module
 */

import {
  transfer,
  type TransferOptions,
  type TransferResult,
} from "../../../proto/transfer/transfer.ts";
import { ConduitProbe } from "./conduit_probe.ts";
import { MemoryConduit, type MemoryPairOptions } from "./memory_conduit.ts";

/** How a conduit ends that lost nothing. */
export const CLEAN = { kind: "clean" } as const;

/** See the module description. */
export interface JoinedConduits {
  readonly a: MemoryConduit;
  readonly b: MemoryConduit;
  /** The other end of `a`, for trouble on the way. */
  readonly leftLine: MemoryConduit;
  /** The other end of `b`. */
  readonly rightLine: MemoryConduit;
  /** Whoever uses `leftLine`. */
  readonly left: ConduitProbe;
  /** Whoever uses `rightLine`. */
  readonly right: ConduitProbe;
  readonly result: Promise<TransferResult>;
}

/** Joins two connections. */
export function joined(
  pair: MemoryPairOptions = {},
  options: TransferOptions = {},
): JoinedConduits {
  const [leftLine, a] = MemoryConduit.pair(pair);
  const [b, rightLine] = MemoryConduit.pair(pair);
  const result = transfer(a, b, options);
  return {
    a,
    b,
    leftLine,
    rightLine,
    left: new ConduitProbe(leftLine),
    right: new ConduitProbe(rightLine),
    result,
  };
}

/** Bytes that tell where in the stream they belong. */
export function pattern(bytes: number, from = 0): Uint8Array {
  const made = new Uint8Array(bytes);
  for (let i = 0; i < bytes; i++) {
    const at = from + i;
    made[i] = (at * 31 + (at >>> 8) * 17) & 0xff;
  }
  return made;
}
