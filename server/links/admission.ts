/**
 * Who may be an agent: judges who are asked in order, until one decides.
 *
 * A judge says nothing about peers that are not its business (another kind of
 * certificate, no token), and the next one is asked. Whom nobody vouches for is
 * refused.
 *
 * @module
 */

import { StatusCode } from "../../proto/grpc/status.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import type {
  LinkAdmission,
  LinkPeer,
  LinkRefusal,
} from "../../proto/link/link.ts";

/** An agent that said who it is. */
export interface LinkCandidate {
  readonly peer: LinkPeer;
  /** Its credential besides its certificate; empty without one. */
  readonly token: string;
}

/** What a judge decided. */
export type Verdict =
  | { readonly admitted: true }
  | ({ readonly admitted: false } & LinkRefusal);

/** Decides, or leaves it to the next one. */
export type Judge = (
  candidate: LinkCandidate,
) => Verdict | undefined | Promise<Verdict | undefined>;

/** The verdict of those who have nothing to object. */
export const ADMITTED: Verdict = { admitted: true };

/** A refusal; PERMISSION_DENIED unless it is for another reason. */
export function refuse(
  message: string,
  code: StatusCode = StatusCode.PERMISSION_DENIED,
): Verdict {
  return { admitted: false, code, message };
}

/**
 * Asks `judges` in order.
 *
 * @returns Why the agent may not link, `undefined` when it may; a promise only
 *   when a judge needed one.
 */
export function judgeCandidate(
  judges: readonly Judge[],
  candidate: LinkCandidate,
): LinkAdmission {
  for (const [index, judge] of judges.entries()) {
    const verdict = judge(candidate);
    if (verdict instanceof Promise) {
      const rest = judges.slice(index + 1);
      return verdict.then((late) =>
        late === undefined ? judgeCandidate(rest, candidate) : refusalIn(late)
      );
    }
    if (verdict !== undefined) return refusalIn(verdict);
  }
  return {
    code: StatusCode.UNAUTHENTICATED,
    message: "Cannot admit this agent: nothing here says who may be one",
  };
}

function refusalIn(verdict: Verdict): LinkRefusal | undefined {
  return verdict.admitted ? undefined : verdict;
}

/**
 * The last judge: about agents that showed no certificate and no token.
 *
 * @param howToJoin What they should do, for the sentence.
 */
export function anonymousJudge(isAllowed: boolean, howToJoin: string): Judge {
  return ({ peer }) => {
    if (!isAnonymous(peer.identity)) return undefined;
    if (isAllowed) return ADMITTED;
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
