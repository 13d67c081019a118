/**
 * The contract with the code that serves dials.
 *
 * @module
 */

import type { Metadata } from "../grpc/metadata.ts";
import type { Conduit } from "../transfer/conduit.ts";
import type { ConnectionId } from "../peer/connection_id.ts";
import { DialError, type DialTarget } from "../peer/dial_error.ts";
import type { TraceContext } from "../peer/trace_context.ts";
import type { PendingDial } from "./link.ts";

/**
 * Names the node whose agent is wanted, in a call's metadata and among the
 * headers of a CONNECT request; ours.
 */
export const NODE_FIELD = "tunnel-node";

/**
 * A server that takes one of two nodes may disagree with one that takes the
 * other.
 */
export const TWO_NODES: string = `Cannot dial: ${NODE_FIELD} is given twice; ` +
  "one connection is made by one node";

/** Why a call names no node, or not one. */
export function nodeProblem(metadata: Metadata): DialError | undefined {
  return metadata.all(NODE_FIELD).length < 2
    ? undefined
    : new DialError("refused", TWO_NODES, undefined, "TUN101");
}

/**
 * Means, with any value, that a dial which names no node is for the only agent
 * there is, and to be refused where there are several: each has a loopback of
 * its own. In a call's metadata and among the headers of a CONNECT request;
 * ours, and ignored by servers that do not know it.
 */
export const ONE_AGENT_FIELD = "tunnel-one-agent";

/**
 * Means, with any value, that the target of a dial which names no node may be a
 * connected node by its name: such a dial is refused with
 * {@linkcode HOST_IS_NODE}, and the caller names the node. In the same places;
 * ours, and sent by people's commands only.
 */
export const NODE_NAME_FIELD = "tunnel-node-name";

/** The code of that refusal. */
export const HOST_IS_NODE = "TUN524";

/** Where the outcome of a dial goes; exactly one of the two, once. */
export interface DialAnswer {
  /** Connected. `conduit` is not attached yet; the caller does that. */
  connected(conduit: Conduit): void;
  failed(error: DialError): void;
}

/** What is known about a dial besides its target. */
export interface DialContext {
  /** The metadata of the call; empty in the packets carrier. */
  readonly metadata: Metadata;
  /** What its DIAL_REQ carries; absent: the asker knows of no ids. */
  readonly id?: ConnectionId | undefined;
  /** The asker's span, where the carrier has a place for it. */
  readonly trace?: TraceContext | undefined;
  /**
   * Takes over what the caller has sent already, to send it ahead with the
   * dial. The taker delivers it, before anything else and once: it does not
   * come through the conduit again. Not taken, it comes as usual.
   */
  takeEarlyData(): Uint8Array;
}

/**
 * Dials a target. May answer before it returns.
 *
 * @returns `cancel`, called at most once and only before an answer; an answer
 *   that crosses it is harmless.
 */
export type DialHandler = (
  target: DialTarget,
  answer: DialAnswer,
  context: DialContext,
) => PendingDial;

/** Resets a conduit that is not wanted any more. */
export function abandon(conduit: Conduit, reason: string): void {
  conduit.attach({
    onData: () => {},
    onWritable: () => {},
    onEnd: () => {},
    onClose: () => {},
  });
  conduit.reset(reason);
}
