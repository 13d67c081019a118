/**
 * What the two ends of a `tunnel/1` link allow each other: more than a public
 * port allows unauthenticated peers, as both are authenticated, and one link
 * carries what thousands of callers do.
 *
 * @module
 */

import type { AbuseLimits } from "../streams/abuse_limits.ts";
import type { KeepaliveOptions } from "../streams/keepalive.ts";

/**
 * Conduits on one link. A server may open as many as agents serve; each may pin
 * its stream window, which starts at 16 KiB by then. So a link promises at most
 * 1 GiB, and only stalled conduits use their share of it.
 */
export const LINK_CONDUITS_MAX = 65_536;

/** Conduits per second that come and go on the busiest link, with room. */
const CONDUITS_PER_SECOND = 10_000;

/** In place of the defaults of `CONNECTION_LIMITS_DEFAULT`. */
export const LINK_LIMITS: Partial<AbuseLimits> = {
  // All callers may hang up at once with dials unanswered, which is not the
  // server's fault; with the default limit it would lose the link and all other
  // conduits.
  resets: { burst: LINK_CONDUITS_MAX, perSecond: CONDUITS_PER_SECOND },
  // More dials at once than the other end takes: each is refused.
  streamErrors: { burst: LINK_CONDUITS_MAX, perSecond: CONDUITS_PER_SECOND },
  // Each of those ends may cross a response, a WINDOW_UPDATE and a reset.
  idleFrames: {
    burst: 3 * LINK_CONDUITS_MAX,
    perSecond: 3 * CONDUITS_PER_SECOND,
  },
  // 256 bytes for each conduit: its response head, and its end.
  controlBytesMax: 256 * LINK_CONDUITS_MAX,
};

/** The longest wait for an answer to PING. */
const PING_TIMEOUT_MS_MAX = 5_600;

/** The shortest limit: an event loop may be busy for this long. */
const PING_TIMEOUT_MS_MIN = 1_000;

/**
 * Of the time between PINGs. With the usual `--keepalive-time` of 4 s a peer that
 * is gone is found within 10 s, and one that stands still for 5 s, as a busy
 * machine may, is not taken for gone; with 1 s, within 3 s.
 */
const PING_TIMEOUT_SHARE = 1.4;

/**
 * Firewalls and NATs on the way forget a silent connection, the first of them
 * after some minutes; so a link is silent for no longer than this, however seldom
 * its peer is to be asked whether it lives.
 */
const REFRESH_MS = 60_000;

/**
 * After this time an agent makes another link, while the doubted one keeps its
 * conduits: on most paths a PING takes less, and on longer ones it gets four
 * round trips.
 */
const DOUBT_MS = 500;

/** @param intervalMs `--keepalive-time`. */
export function linkKeepalive(intervalMs: number): KeepaliveOptions {
  const timeoutMs = Math.min(
    Math.max(PING_TIMEOUT_MS_MIN, intervalMs * PING_TIMEOUT_SHARE),
    PING_TIMEOUT_MS_MAX,
  );
  return {
    intervalMs,
    timeoutMs,
    timeoutMsMax: PING_TIMEOUT_MS_MAX,
    refreshMs: REFRESH_MS,
    doubtMs: DOUBT_MS,
    asksBack: true,
  };
}

/**
 * Konnectivity's servers end a connection on which PINGs come less than 30 s
 * apart (grpc-go's enforcement policy, MinTime; it counts three of them). Its
 * agents answer as many as are sent.
 */
const FOREIGN_PING_MS_MIN = 35_000;

/**
 * An older server wants 5 minutes: after a complaint the interval is doubled,
 * up to this.
 */
const FOREIGN_PING_MS_MAX = 600_000;

/**
 * How often a foreign server may be sent a PING, by what it has said about
 * that.
 */
export class ForeignPings {
  #leastMs = FOREIGN_PING_MS_MIN;

  /** @param intervalMs `--keepalive-time`. */
  keepalive(intervalMs: number): KeepaliveOptions {
    return {
      intervalMs: Math.max(intervalMs, this.#leastMs),
      timeoutMs: PING_TIMEOUT_MS_MAX,
      doubtMs: DOUBT_MS,
    };
  }

  /** It has ended a connection because there were too many (ENHANCE_YOUR_CALM). */
  complained(): void {
    this.#leastMs = Math.min(2 * this.#leastMs, FOREIGN_PING_MS_MAX);
  }
}

/**
 * The same for callers of the agents' port without a link: no conduits depend
 * on them.
 */
export function callerKeepalive(intervalMs: number): KeepaliveOptions {
  return { intervalMs: Math.max(intervalMs, 10_000), timeoutMs: 10_000 };
}
