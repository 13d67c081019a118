/**
 * What the two ends of a `tunnel/1` link allow each other: more than a public
 * port allows unauthenticated peers, as both are authenticated, and one link
 * carries what thousands of callers do.
 *
 * @module
 */

import type { ConnectionLimits } from "../streams/abuse_limits.ts";

/**
 * Conduits on one link. A server may open as many as agents serve; each may pin
 * its stream window, which starts at 16 KiB by then, so this bounds a link at
 * 1 GiB of promises, of which only stalled conduits ever use their share.
 */
export const LINK_CONDUITS_MAX = 65_536;

/** Conduits per second that come and go on the busiest link, with room. */
const CONDUITS_PER_SECOND = 10_000;

/** In place of the defaults of `CONNECTION_LIMITS_DEFAULT`. */
export const LINK_LIMITS: Partial<ConnectionLimits> = {
  // All callers may hang up at once, dials unanswered, and it is not the
  // server's doing; by the default it would lose the link, and all the others.
  resets: { burst: LINK_CONDUITS_MAX, perSecond: CONDUITS_PER_SECOND },
  // Each of those ends may cross a response, a WINDOW_UPDATE and a reset.
  idleFrames: {
    burst: 3 * LINK_CONDUITS_MAX,
    perSecond: 3 * CONDUITS_PER_SECOND,
  },
  // 256 bytes for each conduit: its response head, and its end.
  controlBytesMax: 256 * LINK_CONDUITS_MAX,
};

/**
 * How long the other end of a link may leave a PING unanswered. With the usual
 * `--keepalive-time` of 4 s a peer that is gone is found within 10 s, and one
 * that stands still for 5 s, as a busy machine may, is not taken for gone.
 */
export const LINK_PING_TIMEOUT_MS = 6_000;

/**
 * The same over the packets carrier. Konnectivity's servers close a connection
 * with too many PINGs (grpc-go's enforcement policy), and its agents send one
 * an hour.
 */
export const PACKETS_PING = { leastMs: 10_000, timeoutMs: 10_000 } as const;
