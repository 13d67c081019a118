/**
 * A link as `server/` sees it: a connected agent that takes dials, over either
 * carrier.
 *
 * @module
 */

import type { Code } from "../codes/codes.ts";
import type { StreamOpener } from "../grpc/client.ts";
import { StatusCode } from "../grpc/status.ts";
import type { AnnouncedService, ServiceRefusal } from "./link_messages.ts";
import type { Conduit } from "../transfer/conduit.ts";
import type { ConnectionId } from "../peer/connection_id.ts";
import type { TraceContext } from "../peer/trace_context.ts";
import type { DialError, DialTarget } from "../peer/dial_error.ts";
import type { Identifiers } from "../peer/identifiers.ts";
import type { PeerIdentity } from "../peer/peer_identity.ts";

/** Which carrier a link speaks; see ARCHITECTURE.md. */
export type Carrier = "streams" | "packets";

/** Why an agent may not link. */
export interface LinkRefusal {
  /**
   * UNAUTHENTICATED: it proved nothing. PERMISSION_DENIED: it did, and may not.
   * UNAVAILABLE: the authenticator cannot be reached now.
   */
  readonly code: StatusCode;
  /** A sentence that the agent shows. */
  readonly message: string;
  /** What `tunnel explain` knows more of. */
  readonly tunnelCode?: Code;
}

/** The decision about an agent that requests a link. */
export type LinkAuthorization =
  | LinkRefusal
  | undefined
  | Promise<LinkRefusal | undefined>;

/** For an authorization that failed with an internal error. */
export function internalRefusal(error: unknown): LinkRefusal {
  return { code: StatusCode.INTERNAL, message: String(error) };
}

/** Calls `then` with the decision, at once if it is there. */
export function whenDecided(
  decision: LinkAuthorization,
  then: (refusal: LinkRefusal | undefined) => void,
): void {
  if (!(decision instanceof Promise)) return then(decision);
  decision.then(then, (error) => then(internalRefusal(error)));
}

/** Everything known about an agent's link when it is registered. */
export interface LinkPeer {
  readonly agentId: string;
  readonly identifiers: Identifiers;
  readonly identity: PeerIdentity;
  /** `ip:port`. */
  readonly remoteAddress: string;
  readonly carrier: Carrier;
  /** Its software, such as `tunnel/0.1.0` or `grpc-go/1.81.1`. */
  readonly software: string;
  /** The id of its process; see `peer_identity.ts`. Absent: it sends none. */
  readonly instanceId?: string | undefined;
}

/** A peer that claims to be an agent. */
export interface LinkCandidate {
  readonly peer: LinkPeer;
  /** Its credential besides its certificate; empty without one. */
  readonly token: string;
}

/** What a link needs of `Connection` (client role). */
export interface LinkConnection extends StreamOpener {
  /** Milliseconds (clock) when anything last arrived. */
  readonly lastHeardMs: number;
  /** Since when a PING waits for its answer; `undefined`: none does. */
  readonly askedMs: number | undefined;
  /** The peer has answered so recently that it is alive and reachable. */
  readonly isProven: boolean;
  /** False when new streams should be opened elsewhere (GOAWAY, ids run out). */
  readonly isUsable: boolean;
  /** Streams that move in bulk now. */
  readonly bulkStreams: number;
  /** Newest round trip. */
  readonly roundTripMs: number | undefined;
  /** The shortest one of the path, as far as it is known. */
  readonly leastRoundTripMs?: number | undefined;
  /** Asks for a sign of life. */
  checkLiveness(): void;
  /** Calls `then` once it is proven, which may be at once, and may be never. */
  whenAlive(then: () => void): void;
  /** Finishes what runs, takes nothing new. */
  shutdown(reason: string): void;
  /** Ends everything now. */
  abort(code: number, reason: string): void;
}

/** What is known of the path to an agent, and a way to probe it. */
export type LinkPath = Pick<
  LinkConnection,
  | "lastHeardMs"
  | "askedMs"
  | "bulkStreams"
  | "roundTripMs"
  | "leastRoundTripMs"
  | "checkLiveness"
  | "whenAlive"
>;

/** Facts about a link's connection, for either carrier. */
export abstract class ConnectedLink<Path extends LinkPath = LinkPath> {
  constructor(protected readonly connection: Path) {}

  get lastHeardMs(): number {
    return this.connection.lastHeardMs;
  }

  get askedMs(): number | undefined {
    return this.connection.askedMs;
  }

  /** In the packets carrier all conduits share one stream: 0 or 1. */
  get bulkConduits(): number {
    return this.connection.bulkStreams;
  }

  get roundTripMs(): number | undefined {
    return this.connection.roundTripMs;
  }

  get leastRoundTripMs(): number | undefined {
    return this.connection.leastRoundTripMs;
  }

  checkLiveness(): void {
    this.connection.checkLiveness();
  }
}

/**
 * Most bytes that may leave together with DIAL_REQ. A callee holds them until
 * the target answers, so they must fit the smallest stream window there is.
 */
export const EARLY_BYTES_MAX = 32 * 1024;

/** Outcome of a dial; exactly one of the two is called, once. */
export interface DialEvents {
  /** Connected. Attach to `conduit` before returning. */
  onConnected(conduit: Conduit): void;
  onFailed(error: DialError): void;
}

/** A dial under way. */
export interface PendingDial {
  /** Gives up: DIAL_CLS or RST_STREAM goes out; no event follows. */
  cancel(): void;
  /**
   * Sends what the client sends before there is an answer, behind the early
   * data that went with the dial and within the same limit.
   *
   * @param bytes A part of the byte stream, or exactly one datagram.
   * @returns How many bytes were taken. Those reach the target first and are
   *   dropped when the dial fails. Absent where a dial takes no early data.
   */
  sendEarly?(bytes: Uint8Array): number;
}

/** What may go with a dial. */
export interface LinkDialOptions {
  /**
   * What the client sent already. It leaves together with DIAL_REQ and is the
   * first that the target receives; at most `EARLY_BYTES_MAX` bytes.
   */
  readonly earlyData?: Uint8Array | undefined;
  /** The connection's; absent: the agent makes one. */
  readonly id?: ConnectionId | undefined;
  /** Sent where the carrier has a place for it: streams. */
  readonly trace?: TraceContext | undefined;
}

/** A connected agent. */
export interface AgentLink {
  readonly peer: LinkPeer;
  /** It announced DRAIN: used only when no other agent serves the target. */
  readonly isDraining: boolean;
  /**
   * What its node announces to serve for others, unchecked; a new array for
   * each announcement. Absent where the carrier has none.
   */
  readonly services?: readonly AnnouncedService[];
  /** Milliseconds (clock) when anything last arrived from the agent. */
  readonly lastHeardMs: number;
  /**
   * Since when the agent was asked for a sign of life and has not answered;
   * `undefined`: it was not, or it has.
   */
  readonly askedMs: number | undefined;
  /** Conduits and pending dials now. */
  readonly load: number;
  /** Those that one end has half-closed: only a goodbye is left. */
  readonly ending?: number;
  /** Conduits that move in bulk now, in either direction. */
  readonly bulkConduits: number;
  /** Newest round trip; `undefined` until one was measured. */
  readonly roundTripMs: number | undefined;
  /** The shortest one of the path; a queue on the way makes the newest longer. */
  readonly leastRoundTripMs?: number | undefined;
  /** It has answered so recently that it is alive and reachable. */
  readonly isProven: boolean;
  /** Asks for a sign of life, which moves `lastHeardMs`. */
  checkLiveness(): void;
  /**
   * Calls `then` when early data may leave for the agent: at once if it is
   * proven, else when it has answered. Never where it saves nothing.
   */
  whenAlive(then: () => void): void;
  /** Makes the agent dial. Deadlines are the caller's business. */
  dial(
    target: DialTarget,
    events: DialEvents,
    options?: LinkDialOptions,
  ): PendingDial;
  /** Sends the agent which of its services are refused, and why. */
  refuseServices?(refused: readonly ServiceRefusal[]): void;
  /** Warns the agent that another process uses its node's identity, too. */
  warnOfDuplicate?(message: string): void;
  /** Ends the link; its conduits are lost with `reason`. */
  close(reason: string): void;
}

// What a link reports to metrics. Counters only: everything here is called on
// the hot path.

export interface PacketObserver {
  /**
   * A packet arrived.
   *
   * @param type Its name, such as `DATA`.
   * @param bytes Of payload; 0 for all types but DATA.
   */
  packetReceived(type: string, bytes: number): void;
  /** A packet was handed to the output; see `packetReceived`. */
  packetSent(type: string, bytes: number): void;
  /** A datagram was dropped: too long, or no room for it. */
  datagramDropped?(): void;
  /** A Go agent had cut the datagram that was just counted as dropped. */
  datagramCut?(): void;
  /** A conduit was reset because it made no progress and blocked the others. */
  conduitStalled?(): void;
  /** A conduit began (1) or stopped (−1) blocking the others of its link. */
  conduitHolds?(change: 1 | -1): void;
  /**
   * A stream of packets ended with an error.
   *
   * @param code Its gRPC status, from either end; CANCELLED when the other end
   *   reset it, UNAVAILABLE when it was lost.
   */
  streamFailed?(code: StatusCode): void;
}

/** Counts nothing. */
export const SILENT_OBSERVER: PacketObserver = {
  packetReceived() {},
  packetSent() {},
};
