/**
 * What can be wrong with a peer's packets.
 *
 * Always the peer's fault: our own mistakes are a `TypeError` or `RangeError`,
 * which are not caught. The blast radius is the stream that carried the bytes,
 * because the message borders after a bad one cannot be trusted.
 *
 * @module
 */

import type { Code } from "../codes/codes.ts";

/** Thrown by the packet codec and reader. The message names what was seen. */
export class PacketError extends Error {
  override readonly name = "PacketError";
  readonly tunnelCode: Code = "TUN417";
}
