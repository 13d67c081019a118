/**
 * Limits on what all peers of a process together, and those of one source, may
 * hold.
 *
 * A source is an IPv4 address or an IPv6 /64 (`source.ts`). Behind one address
 * there may be a whole site (NAT) or all agents there are (a load balancer that
 * puts its own address), so a source may do ten times what two hundred
 * reconnecting agents need, and all sources together may use what memory
 * allows. A unix socket is no source: its mode decides who may open it, and
 * only the limits on all hold there.
 *
 * @module
 */

import type { BucketSize } from "../../proto/streams/token_bucket.ts";
import { descriptorsLeft } from "../libc/descriptors.ts";

/** What is limited; also the label of the counter. */
export type ConnectionLimit =
  | "unauthenticated_connections"
  | "connections"
  | "streams"
  | "header_bytes"
  | "resets"
  | "handshakes"
  | "bytes"
  | "work"
  | "faults"
  /** Health, administration and its other ports share this limit. */
  | "http_connections";

/** What a limit is on. */
export type LimitScope = "connection" | "source" | "all";

/**
 * What an unauthenticated peer may send, all in all. It needs that much to
 * authenticate: a token (16 KiB), identifiers (64 KiB), or a message of Join
 * (64 KiB), and HTTP/2 around it.
 */
export const UNAUTHENTICATED_BYTES_MAX = 128 * 1024;

/** The limits of one scope. */
export interface ConnectionLimits {
  /**
   * Connections whose peer is unauthenticated: handshakes under way, and peers
   * that finished one without a certificate and are not admitted yet. When
   * there are too many, the one that has waited longest is closed: honest peers
   * need milliseconds, so it is rarely one of them.
   */
  readonly unauthenticated: number;
  /**
   * All connections. One more is refused unless an unauthenticated peer can go
   * for it.
   */
  readonly connections: number;
  /** Calls that peers have open. One more is refused (REFUSED_STREAM). */
  readonly streams: number;
  /** Bytes of incomplete request heads. */
  readonly headerBytes: number;
  /** Calls that were begun and thrown away. */
  readonly resets: BucketSize;
  /**
   * Handshakes that authenticated no peer: one more is not begun. A peer that
   * authenticates gets its own back. Each is a signature, a key exchange and
   * their objects, about two milliseconds.
   */
  readonly handshakes: BucketSize;
  /**
   * Milliseconds of work for unauthenticated peers; a peer that makes more is
   * closed.
   */
  readonly work: BucketSize;
}

/** Both scopes. */
export interface LimitPlan {
  readonly source: ConnectionLimits;
  readonly all: ConnectionLimits;
}

const MIB = 1024 * 1024;

/** Default limits for one source. */
export const SOURCE_LIMITS_DEFAULT: ConnectionLimits = {
  // 200 agents with eight links each reconnect at once.
  unauthenticated: 2_048,
  // Twice the ten thousand idle callers that one API server is measured with.
  connections: 20_000,
  // As many conduits as one link may have; each has one call.
  streams: 65_536,
  // 64 of the longest header blocks (128 KiB) or 256 CONNECT heads.
  headerBytes: 8 * MIB,
  // All calls of a busy API server are cancelled at once, and again.
  resets: { burst: 65_536, perSecond: 5_000 },
  // 200 nodes reconnect with expired certificates, two calls each; then a tenth
  // of the time.
  handshakes: { burst: 512, perSecond: 50 },
  // 200 nodes join at once, at five milliseconds each; then a tenth.
  work: { burst: 1_000, perSecond: 100 },
};

/** Default limits for all sources together. */
export const ALL_LIMITS_DEFAULT: ConnectionLimits = {
  unauthenticated: 4_096,
  connections: 65_536,
  streams: 262_144,
  headerBytes: 64 * MIB,
  resets: { burst: 262_144, perSecond: 20_000 },
  // Half of the time is left to authenticated peers.
  handshakes: { burst: 4_096, perSecond: 250 },
  work: { burst: 2_000, perSecond: 250 },
};

/** Descriptors left to targets, files and names when none may connect. */
const DESCRIPTORS_RESERVED_SHARE = 1 / 8;

/** Unauthenticated peers get at most this share of the connections. */
const UNAUTHENTICATED_SHARE = 1 / 2;

/** What a process may choose; the rest are the defaults above. */
export interface LimitConfig {
  readonly connectionsMax?: number;
  readonly sourceConnectionsMax?: number;
  readonly unauthenticatedMax?: number;
  readonly sourceUnauthenticatedMax?: number;
}

/**
 * Fills in the defaults, and keeps those below the descriptors of the process:
 * without descriptors no peer is served, known or not.
 *
 * @param descriptors How many the process may have; `undefined`: not known.
 */
export function limitPlan(
  config: LimitConfig = {},
  descriptors: number | undefined = undefined,
): LimitPlan {
  const room = descriptors === undefined
    ? Infinity
    : Math.floor(descriptors * (1 - DESCRIPTORS_RESERVED_SHARE));
  const connections = config.connectionsMax ??
    Math.min(ALL_LIMITS_DEFAULT.connections, room);
  const unauthenticated = config.unauthenticatedMax ?? Math.min(
    ALL_LIMITS_DEFAULT.unauthenticated,
    Math.ceil(connections * UNAUTHENTICATED_SHARE),
  );
  return {
    source: {
      ...SOURCE_LIMITS_DEFAULT,
      connections: config.sourceConnectionsMax ??
        SOURCE_LIMITS_DEFAULT.connections,
      unauthenticated: config.sourceUnauthenticatedMax ??
        SOURCE_LIMITS_DEFAULT.unauthenticated,
    },
    all: { ...ALL_LIMITS_DEFAULT, connections, unauthenticated },
  };
}

/**
 * Ways to health and administration: their two ports, the socket and the port
 * for other machines. They share the descriptors that links leave
 * (`net/libc/descriptors.ts`), so that silent connections to them harm no other
 * port.
 */
const HTTP_WAYS = 4;

/** Peers at once that one way does not know: a probe takes milliseconds. */
const HTTP_UNKNOWN = { min: 2, max: 128 } as const;

/** So many times more may be connected that are known: they watch, or operate. */
const HTTP_KNOWN_TIMES = 2;

/** What one source may have of that. */
const HTTP_SOURCE_SHARE = 3 / 4;

/** The limits of one such way, with `descriptors` for the process. */
export function httpPlan(descriptors: number | undefined): LimitPlan {
  const { min, max } = HTTP_UNKNOWN;
  const left = descriptors === undefined
    ? Infinity
    : descriptorsLeft("link", descriptors);
  const unauthenticated = Math.min(
    max,
    Math.max(min, Math.floor(left / HTTP_WAYS)),
  );
  const connections = unauthenticated * (1 + HTTP_KNOWN_TIMES);
  const ofSource = Math.ceil(unauthenticated * HTTP_SOURCE_SHARE);
  return {
    source: {
      ...SOURCE_LIMITS_DEFAULT,
      connections,
      unauthenticated: ofSource,
    },
    all: { ...ALL_LIMITS_DEFAULT, connections, unauthenticated },
  };
}
