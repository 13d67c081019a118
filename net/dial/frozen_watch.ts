/**
 * Finds out that a peer stands still which was sent what may be said once only, so
 * that nobody else may be asked: it has answered no PING at several looks. A look
 * that is late does not count: this machine is busy, and may be the peer's, too.
 *
 * It refuses to know how a peer is asked.
 *
 * @module
 */

import type { Timer, Timers } from "../../proto/sync/clock.ts";

/** Looks in a row at which nothing was heard. */
export const FROZEN_LOOKS = 3;
export const FROZEN_LOOK_MS = 500;
const LATE_MS = 100;

/** What is known of the peer, and what follows. */
export interface WatchedPeer {
  /** It was asked for a sign of life, gives none, and that matters. */
  isSilent(): boolean;
  /** It is not silent: it is to be asked again, and watched from then on. */
  heard(): void;
  frozen(): void;
}

/** Looks until one of the two has happened. */
export function watchFrozen(timers: Timers, peer: WatchedPeer): Timer {
  let timer: Timer;
  const look = (looks: number) => {
    const dueMs = timers.now() + FROZEN_LOOK_MS;
    timer = timers.after(FROZEN_LOOK_MS, () => {
      if (timers.now() > dueMs + LATE_MS) look(1);
      else if (!peer.isSilent()) peer.heard();
      else if (looks < FROZEN_LOOKS) look(looks + 1);
      else peer.frozen();
    });
  };
  look(1);
  return { cancel: () => timer.cancel() };
}
