/**
 * Tells a peer whether it would be admitted as an agent, and why not. `tunnel
 * doctor` needs that without a link, because a second link of a node looks like
 * a copy of its identity. The question changes nothing. The decision itself is
 * made elsewhere.
 *
 * @module
 */

import type { MethodHandler } from "../../proto/grpc/call.ts";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import { unaryMethod } from "../../proto/grpc/server.ts";
import { IDENTITY_MESSAGE_BYTES_MAX } from "../../proto/identity/enrolment.ts";
import {
  IDENTITY_METHODS,
  StandingAnswer,
  StandingRequest,
} from "../../proto/identity/identity_messages.ts";
import type {
  AgentLink,
  LinkAuthorization,
  LinkCandidate,
  LinkPeer,
} from "../../proto/link/link.ts";
import {
  type Identifiers,
  IdentifiersError,
  parseIdentifiers,
} from "../../proto/peer/identifiers.ts";
import type { ConnectionPeer } from "./agent_port.ts";

/** An answer names no more links than this. */
const LINKS_MAX = 16;

/** What the service needs from outside. */
export interface StandingServiceOptions {
  readonly serverId: string;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  /** Whether a peer may be an agent; must have no effect. */
  readonly admit: (candidate: LinkCandidate) => LinkAuthorization;
  /** Links with the same proven key for the same agent. */
  readonly linksOf: (peer: LinkPeer) => readonly AgentLink[];
  /** How many processes of them were found to live beside each other. */
  readonly instancesOf: (peer: LinkPeer) => number;
}

/** The method, as one connection may call it. */
export function standingMethods(
  options: StandingServiceOptions,
  { identity, remoteAddress }: ConnectionPeer,
): Readonly<Record<string, MethodHandler>> {
  return {
    [IDENTITY_METHODS.standing]: unaryMethod(async (bytes) => {
      const request = StandingRequest.decode(bytes);
      const peer: LinkPeer = {
        agentId: request.agentId,
        identifiers: identifiersOf(request.identifiers),
        identity,
        remoteAddress,
        carrier: "streams",
        software: request.software,
      };
      const refusal = await options.admit({ peer, token: request.token });
      // A peer that would not be admitted learns only that.
      const links = refusal === undefined ? options.linksOf(peer) : [];
      return StandingAnswer.encode({
        refusal: refusal?.message ?? "",
        code: "",
        serverId: options.serverId,
        now: new Date(options.wallClock()).toISOString(),
        linkedFrom: links.slice(0, LINKS_MAX)
          .map((link) => link.peer.remoteAddress),
        instances: refusal === undefined ? options.instancesOf(peer) : 0,
      });
    }, { messageBytesMax: IDENTITY_MESSAGE_BYTES_MAX }),
  };
}

function identifiersOf(query: string): Identifiers {
  try {
    return parseIdentifiers(query, "server");
  } catch (error) {
    if (!(error instanceof IdentifiersError)) throw error;
    throw new GrpcError(StatusCode.INVALID_ARGUMENT, error.message);
  }
}
