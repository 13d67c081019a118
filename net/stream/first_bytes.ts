/**
 * Looks whether a caller speaks first, without holding up one that listens.
 *
 * @module
 */

import { atMost } from "../../platform/time/deadline.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { Socket } from "./socket.ts";

/**
 * How long we wait for a caller's first bytes. Bytes that are here by then save
 * a round trip; a target that speaks first waits that long.
 */
export const EARLY_WAIT_MS = 3;

/**
 * Waits for the first bytes for at most `waitMs`.
 *
 * @returns What came in time, which stays in `socket`; empty when nothing did.
 * @throws What reading the socket throws, when that happens in time.
 */
export async function firstBytes(
  socket: Socket,
  waitMs: number,
  timers: Timers,
): Promise<Uint8Array<ArrayBuffer>> {
  const looking = socket.fill();
  // Later bytes are for the next user of the stream.
  looking.catch(() => {});
  await atMost(timers, waitMs, looking);
  return socket.bytes;
}
