/**
 * Looks whether a caller speaks first, without holding up one that listens.
 *
 * @module
 */

import { atMost } from "../../platform/time/deadline.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import type { Socket } from "./socket.ts";

/**
 * How long a caller may take to speak first, where what it says by then saves a
 * round trip; a target that speaks first waits so long.
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
  // What comes too late is for who takes the stream over.
  looking.catch(() => {});
  await atMost(timers, waitMs, looking);
  return socket.bytes;
}
