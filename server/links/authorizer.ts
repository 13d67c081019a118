/**
 * Which peers may be agents: authorizers are asked in order, until one decides.
 *
 * An authorizer does not decide about peers of another kind (another kind of
 * certificate, no token); then the next one is asked. A peer about which no
 * authorizer decides is refused.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { StatusCode } from "../../proto/grpc/status.ts";
import { isNodeName, NODE_NAME_RULE } from "../../proto/identity/node_name.ts";
import { quoted } from "../../proto/peer/quoted.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import type {
  LinkAuthorization,
  LinkCandidate,
  LinkRefusal,
} from "../../proto/link/link.ts";

/** What an authorizer decided. */
export type LinkDecision =
  | { readonly admitted: true }
  | ({ readonly admitted: false } & LinkRefusal);

/** Decides, or leaves it to the next one. */
export type Authorizer = (
  candidate: LinkCandidate,
) => LinkDecision | undefined | Promise<LinkDecision | undefined>;

/** The decision of an authorizer that has no objection. */
export const ADMITTED: LinkDecision = { admitted: true };

/** A refusal; PERMISSION_DENIED unless it is for another reason. */
export function refuse(
  message: string,
  code: StatusCode = StatusCode.PERMISSION_DENIED,
  tunnelCode: Code = "TUN320",
): LinkDecision {
  return { admitted: false, code, message, tunnelCode };
}

/**
 * Asks `authorizers` in order.
 *
 * @returns Why the agent may not link, `undefined` when it may. It is a promise
 *   only when an authorizer returned one.
 */
export function authorize(
  authorizers: readonly Authorizer[],
  candidate: LinkCandidate,
): LinkAuthorization {
  for (const [index, authorizer] of authorizers.entries()) {
    const decision = authorizer(candidate);
    if (decision instanceof Promise) {
      const rest = authorizers.slice(index + 1);
      return decision.then((late) =>
        late === undefined ? authorize(rest, candidate) : refusalIn(late)
      );
    }
    if (decision !== undefined) return refusalIn(decision);
  }
  return {
    code: StatusCode.UNAUTHENTICATED,
    message:
      "Cannot admit this agent: no setting here says which agents may link",
  };
}

function refusalIn(decision: LinkDecision): LinkRefusal | undefined {
  return decision.admitted ? undefined : decision;
}

/**
 * The last authorizer: about agents that showed no certificate and no token.
 *
 * @param howToJoin What they should do, for the sentence.
 */
export function anonymousAuthorizer(
  isAllowed: boolean,
  howToJoin: string,
): Authorizer {
  return ({ peer }) => {
    if (!isAnonymous(peer.identity)) return undefined;
    // Upper case included, because Konnectivity's agents may have such names.
    if (isAllowed && isNodeName(peer.agentId.toLowerCase())) return ADMITTED;
    if (isAllowed) {
      return refuse(
        `Cannot admit this agent: its id ${quoted(peer.agentId)} is no name ` +
          `of a node; wanted ${NODE_NAME_RULE}`,
      );
    }
    return refuse(
      `Cannot admit this agent: it showed no certificate, ${howToJoin}`,
      StatusCode.UNAUTHENTICATED,
    );
  };
}

/** Whether a peer proved nothing about itself. */
export function isAnonymous(identity: PeerIdentity): boolean {
  return identity.kind === "anonymous";
}

/** Warnings that are remembered; beyond that, one may be repeated. */
export const WARNINGS_MAX = 10_000;

/** Reports each problem of an agent once, and again after a time. */
export class SaidOnce {
  readonly #saidMs = new Map<string, number>();

  /** @param againMs After this time it is reported again; absent: never. */
  constructor(
    private readonly nowMs: () => number = () => 0,
    private readonly againMs = Infinity,
  ) {}

  /** Whether it was not said lately; now it was. */
  isNew(key: string): boolean {
    const now = this.nowMs();
    const said = this.#saidMs.get(key);
    if (said !== undefined && now - said < this.againMs) return false;
    if (this.#saidMs.size >= WARNINGS_MAX) this.#saidMs.clear();
    this.#saidMs.set(key, now);
    return true;
  }
}
