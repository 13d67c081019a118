/**
 * A link as `server/` sees it: a connected agent that can be asked to dial,
 * whichever carrier it speaks.
 *
 * @module
 */

import { StatusCode } from "../grpc/status.ts";
import type { AnnouncedService, ServiceRefusal } from "./control_messages.ts";
import type { Conduit } from "../transfer/conduit.ts";

/** Which of DESIGN §2's carriers a link speaks. */
export type Carrier = "streams" | "packets";

/** Who is at the other end, as proven by its certificate. */
export interface PeerIdentity {
  /** `anonymous` when no certificate was shown. */
  readonly kind: "certificate" | "anonymous";
  /** Subject common name; empty when anonymous. */
  readonly commonName: string;
  /** SHA-256 of the certificate in hex; empty when anonymous. */
  readonly fingerprint: string;
  /** Subject alternative names, such as `DNS:node1`. */
  readonly names: readonly string[];
  /** More of the certificate, for those who decide what it is good for. */
  readonly certificate?: PeerCertificate;
}

/** A certificate whose holder was verified. */
export interface PeerCertificate {
  /** Subject organizations (O); Kubernetes calls them groups. */
  readonly organizations: readonly string[];
  /** SHA-256 of the SubjectPublicKeyInfo in hex: the same as long as the key is. */
  readonly publicKeySha256: string;
  /** In hex, as the platform writes it. */
  readonly serialNumber: string;
  /** DER. */
  readonly der: Uint8Array;
  /** When it ends, milliseconds since 1970. */
  readonly notAfterMs: number;
}

/** Why an agent may not link. */
export interface LinkRefusal {
  /**
   * UNAUTHENTICATED: it proved nothing. PERMISSION_DENIED: it did, and may not.
   * UNAVAILABLE: who would know cannot be asked now.
   */
  readonly code: StatusCode;
  /** A sentence that the agent shows. */
  readonly message: string;
}

/** What becomes of an agent that asks for a link. */
export type Admission =
  | LinkRefusal
  | undefined
  | Promise<LinkRefusal | undefined>;

/** For an admission that failed by itself, which is ours to look into. */
export function internalRefusal(error: unknown): LinkRefusal {
  return { code: StatusCode.INTERNAL, message: String(error) };
}

/** What an agent says it serves; the keys of `--agent-identifiers`. */
export interface Identifiers {
  readonly host: readonly string[];
  readonly ipv4: readonly string[];
  readonly ipv6: readonly string[];
  readonly cidr: readonly string[];
  readonly uid: readonly string[];
  readonly defaultRoute: boolean;
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
  /** Of its process; see `instance_id.ts`. Absent: it does not tell. */
  readonly instanceId?: string;
}

/** Why a dial failed. Konnectivity's words stay in `message`. */
export type DialFailureReason =
  /** The agent tried and could not (`message` is its text). */
  | "endpoint"
  | "timeout"
  /** Whoever asked gave up. */
  | "cancelled"
  /** The link went while the dial was pending. */
  | "link-lost"
  /** The agent closed the pending dial (DIAL_CLS). */
  | "dial-closed"
  /** No agent serves the target. */
  | "no-agent"
  /** A rule of the server's or the agent's forbids it. */
  | "refused";

/** How a dial was lost on the way to whoever was asked. */
export type DialLoss =
  /** It was certainly not looked at: it can be made again, whatever it said. */
  | "unheard"
  /** It may have been: what was said with it must not be said again. */
  | "unanswered";

/** Thrown (or handed over) when a dial fails. */
export class DialError extends Error {
  override readonly name = "DialError";

  /** @param loss That nobody answered, and why; absent: somebody did. */
  constructor(
    readonly reason: DialFailureReason,
    message: string,
    readonly loss?: DialLoss,
  ) {
    super(message);
  }
}

/** What is to be dialed. */
export interface DialTarget {
  /** `tcp`, `udp` or `unix`. */
  readonly protocol: string;
  /** `host:port`, or a path for `unix`. */
  readonly address: string;
}

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
   * Sends what the client says while nobody has answered yet, behind the early
   * data that went with the dial and within the same limit.
   *
   * @param bytes A part of the byte stream, or exactly one datagram.
   * @returns How many bytes were taken. Those reach the target first and are
   *   dropped when the dial fails. Absent where a dial takes no early data.
   */
  sendEarly?(bytes: Uint8Array): number;
}

/** What may go with a dial. */
export interface DialOptions {
  /**
   * What the client said already. It leaves together with the question and is
   * the first that the target hears; at most `EARLY_BYTES_MAX` bytes.
   */
  readonly earlyData?: Uint8Array;
}

/** A connected agent. */
export interface AgentLink {
  readonly peer: LinkPeer;
  /** It announced DRAIN: used only when no other agent serves the target. */
  readonly isDraining: boolean;
  /**
   * What its node serves for others, as it says, unjudged; a new array whenever
   * it says so anew. Absent where the carrier cannot tell.
   */
  readonly services?: readonly AnnouncedService[];
  /** Milliseconds (clock) when anything last arrived from the agent. */
  readonly lastHeardMs: number;
  /** Conduits and pending dials now. */
  readonly load: number;
  /** Conduits that move in bulk now, in either direction. */
  readonly bulkConduits: number;
  /** Newest round trip; `undefined` until one was measured. */
  readonly roundTripMs: number | undefined;
  /** Asks for a sign of life, which moves `lastHeardMs`. */
  askForLife(): void;
  /** Asks the agent to dial. Deadlines are the caller's business. */
  dial(
    target: DialTarget,
    events: DialEvents,
    options?: DialOptions,
  ): PendingDial;
  /** Tells the agent which of its services are not taken, and why. */
  refuseServices?(refused: readonly ServiceRefusal[]): void;
  /** Tells the agent that another process speaks for its node, too. */
  warnOfDuplicate?(message: string): void;
  /** Ends the link; its conduits are lost with `reason`. */
  close(reason: string): void;
}
