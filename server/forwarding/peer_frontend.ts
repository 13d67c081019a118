/**
 * Other servers that forward dials to us, on the agent port: the same method as
 * callers have, for a certificate of a server of our own authority.
 *
 * It believes such a server about the origin of the dial, and no other peer:
 * the same field of other peers is never read. It decides nothing about the
 * dial: the dialer does, by our policy, and forwards it no further.
 *
 * @module
 */

import type { MethodHandler } from "../../proto/grpc/call.ts";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import {
  type DialAnswer,
  type DialContext,
  failedDial,
} from "../../proto/link/dial_handler.ts";
import { nodeProblem, readWishes } from "../../proto/link/dial_wishes.ts";
import type { PendingDial } from "../../proto/link/link.ts";
import { PROXY_PATH } from "../../proto/link/capabilities.ts";
import { proxyService } from "../../proto/link/proxy_service.ts";
import { DialError, type DialTarget } from "../../proto/peer/dial_error.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import type { ConnectionPeer } from "../links/agent_port.ts";
import type { LimitedTools } from "../routing/caller_loads.ts";
import type { CallerDial } from "../routing/dialer.ts";
import { decodeForwarded } from "./forwarded_caller.ts";
import { PEER_CONDUITS_MAX } from "./peer_server.ts";

/** What it needs from outside. */
export interface PeerFrontendOptions extends LimitedTools {
  /** We decide by a policy, too. */
  readonly hasPolicy: boolean;
  /** Whether a certificate is a server's of our authority, as of now. */
  isServer(identity: PeerIdentity): boolean;
  /** A dial was refused before its target was looked at. */
  refused(remoteAddress: string, reason: string): void;
}

/**
 * Serves dials of other servers, on all connections to the agent port.
 *
 * @returns The method, as one connection that is a server's may call it.
 */
export function peerFrontend(
  options: PeerFrontendOptions,
): (peer: ConnectionPeer) => Readonly<Record<string, MethodHandler>> {
  return ({ identity, remoteAddress }) => {
    const serve = proxyService({
      ...options,
      onDial: (target, answer, context) => {
        try {
          return dial(options, requested(options, target, context), answer);
        } catch (error) {
          if (!(error instanceof DialError)) throw error;
          options.refused(remoteAddress, error.message);
          return failedDial(answer, error);
        }
      },
    });
    return {
      [PROXY_PATH]: (call) => {
        if (options.isServer(identity)) return serve(call);
        // It has a newer certificate by now, and makes another connection.
        throw new GrpcError(
          StatusCode.UNAVAILABLE,
          "the authority of this server's certificate is trusted no more",
        );
      },
    };
  };
}

/** @throws {DialError} */
function requested(
  { hasPolicy }: PeerFrontendOptions,
  target: DialTarget,
  { metadata, id, trace, takeEarlyData }: DialContext,
): CallerDial {
  const { caller, hasPolicy: wasDecided } = decodeForwarded(metadata);
  if (wasDecided && !hasPolicy) {
    throw new DialError(
      "refused",
      `Cannot take this dial: server ${caller.forwardedBy} has a policy, ` +
        "and this one has none to decide about its nodes; give all servers " +
        "the same --policy-file",
      { code: "TUN501" },
    );
  }
  const problem = nodeProblem(metadata);
  if (problem !== undefined) throw problem;
  const wishes = readWishes((field) => metadata.text(field));
  return { ...wishes, target, id, trace, caller, takeEarlyData };
}

/** @throws {DialError} */
function dial(
  options: PeerFrontendOptions,
  request: CallerDial,
  answer: DialAnswer,
): PendingDial {
  const load = options.loads.of(request.caller);
  if (load < PEER_CONDUITS_MAX) return options.dial(request, answer);
  throw new DialError(
    "refused",
    `Cannot take this dial: server ${request.caller.forwardedBy} has ${load} ` +
      "connections here, and no server may have more",
    { code: "TUN409" },
  );
}

/** As `no-agent`, so that the asking server tries the next one. */
export function refuseForwarded(
  _request: CallerDial,
  answer: DialAnswer,
): PendingDial {
  const error = new DialError(
    "no-agent",
    "No agent available: a server that may have one takes no dials of " +
      "others; start all servers with --peer-forwarding",
    { code: "TUN501" },
  );
  return failedDial(answer, error);
}
