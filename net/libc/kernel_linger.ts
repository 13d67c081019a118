/**
 * Lets a peer read our last bytes while we read no more from it.
 *
 * To close a socket with bytes unread answers them with RST, which can destroy
 * what we sent last; to go on reading costs us what a flood costs. So the
 * connection is kept open by a second descriptor that is not read: what the
 * peer still sends fills the kernel's buffer and then stops it, and our end of
 * the stream comes behind our last bytes.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import type { LibC } from "./libc.ts";

const SHUT_WR = 1;

/** How long the peer has to read our last bytes. */
export const KERNEL_LINGER_MS = 1_000;

/** What was written in this turn leaves first. */
const FLUSH_MS = 5;

/**
 * To be called before a socket is closed, whose descriptor this is. Where there
 * is no second descriptor to be had, it ends at once.
 */
export function lingerInKernel(
  library: LibC,
  descriptor: number,
  timers: Timers,
): void {
  const kept = library.dup(descriptor);
  if (kept < 0) return;
  timers.after(FLUSH_MS, () => void library.shutdown(kept, SHUT_WR));
  timers.after(KERNEL_LINGER_MS, () => void library.close(kept));
}
