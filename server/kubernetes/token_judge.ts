/**
 * Judges agents by the ServiceAccount token that they show, as Konnectivity's
 * server does, and by the node that the token is bound to.
 *
 * A token proves a ServiceAccount, which all agents share. Since Kubernetes
 * 1.30 it also says on which node its Pod runs: then an agent that claims
 * another node's name or address is known for what it is. Agents of
 * Konnectivity have made up their ids for years, so that is shown and not
 * refused, unless `--node-binding=enforce` is set.
 *
 * @module
 */

import { sourceOf } from "../../host/intake/source.ts";
import {
  KubernetesConfigError,
  KubernetesError,
} from "../../host/kubernetes/errors.ts";
import type { ReviewedToken } from "../../host/kubernetes/token_review.ts";
import { StatusCode } from "../../proto/grpc/status.ts";
import { NO_IDENTIFIERS } from "../../proto/link/identifiers.ts";
import type { Identifiers, LinkPeer } from "../../proto/link/link.ts";
import type { NodeBinding } from "../identity/binding_judge.ts";
import { unprovenClaim } from "../identity/claims.ts";
import {
  ADMITTED,
  isAnonymous,
  type Judge,
  refuse,
  type Verdict,
} from "../links/admission.ts";
import { TooManyReviewsError } from "./review_queue.ts";
import { flawOf } from "./token_claims.ts";

/** Agents remembered as warned about; beyond that, more is said than needed. */
const WARNED_AGENTS_MAX = 10_000;

/** Longest text of a token's user that is quoted. */
const QUOTE_LENGTH_MAX = 253;

/** Whose tokens are wanted. */
export interface TokenRequirement {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly audience: string;
}

/** See {@linkcode tokenJudge}. */
export interface TokenJudgeOptions {
  readonly wanted: TokenRequirement;
  readonly reviews: {
    of(token: string, source: string): Promise<ReviewedToken>;
  };
  /** Host names and addresses of a node of the cluster. */
  readonly addresses: { of(nodeName: string): Promise<Identifiers> };
  readonly binding: NodeBinding;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly observer: {
    /** How a review went: `admitted`, `invalid`, `denied` or `unavailable`. */
    reviewed(outcome: string): void;
    /** An agent claims another node's name than its token's. */
    mismatched(): void;
    warn(message: string): void;
  };
}

/**
 * See the module description. About agents without a token it decides only
 * when they show no certificate either.
 */
export function tokenJudge(options: TokenJudgeOptions): Judge {
  const warned = new Set<string>();
  const { wanted } = options;
  return ({ peer, token }) => {
    if (token === "") {
      if (!isAnonymous(peer.identity)) return undefined;
      return refuse(
        "Cannot admit this agent: it showed neither a certificate nor a " +
          `token, wanted one of ServiceAccount ${accountName(wanted)}; set ` +
          "--service-account-token-path",
        StatusCode.UNAUTHENTICATED,
      );
    }
    return judgeToken(options, peer, token, warned);
  };
}

async function judgeToken(
  options: TokenJudgeOptions,
  peer: LinkPeer,
  token: string,
  warned: Set<string>,
): Promise<Verdict> {
  const { reviews, wanted, observer, wallClock } = options;
  const flaw = flawOf(token, wanted, wallClock());
  if (flaw !== undefined) {
    const verdict = judgeFinding(flaw, wanted);
    observer.reviewed(outcomeOf(verdict));
    return verdict;
  }
  let found: ReviewedToken;
  try {
    found = await reviews.of(token, sourceOf(peer.remoteAddress));
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    observer.reviewed("unavailable");
    observer.warn(`cannot have an agent's token reviewed: ${error.message}`);
    return refuse(
      "Cannot check this agent's token: the server cannot ask the Kubernetes " +
        "API server now; its log says why",
      StatusCode.UNAVAILABLE,
    );
  }
  const verdict = judgeFinding(found, wanted);
  observer.reviewed(outcomeOf(verdict));
  if (!verdict.admitted || found.kind !== "service-account") return verdict;
  return await judgeNode(options, peer, found, warned);
}

/** As people call a ServiceAccount; anybody else in quotes. */
function userName(username: string): string {
  const account = /^system:serviceaccount:([a-z0-9.-]+):([a-z0-9.-]+)$/;
  const match = account.exec(username);
  return match === null
    ? JSON.stringify(username)
    : `ServiceAccount ${match[1]}/${match[2]}`;
}

function judgeFinding(found: ReviewedToken, wanted: TokenRequirement): Verdict {
  if (found.kind === "invalid") {
    return refuse(
      `Cannot admit this agent: its token is not valid here (${found.why}); ` +
        "mount a token for audience " +
        `"${wanted.audience}" of ServiceAccount ${accountName(wanted)}`,
      StatusCode.UNAUTHENTICATED,
    );
  }
  const seen = found.kind === "stranger"
    ? userName(found.username.slice(0, QUOTE_LENGTH_MAX))
    : `ServiceAccount ${found.namespace}/${found.name}`;
  const isWanted = found.kind === "service-account" &&
    found.namespace === wanted.namespace &&
    found.name === wanted.serviceAccount;
  if (isWanted) return ADMITTED;
  return refuse(
    `Cannot admit this agent: its token is of ${seen}, wanted one of ` +
      `ServiceAccount ${accountName(wanted)}`,
  );
}

/** Compares what the agent calls itself with where its Pod runs. */
async function judgeNode(
  { addresses, binding, observer }: TokenJudgeOptions,
  peer: LinkPeer,
  { nodeName, podName }: Extract<ReviewedToken, { kind: "service-account" }>,
  warned: Set<string>,
): Promise<Verdict> {
  if (nodeName === undefined) return ADMITTED;
  // A Pod may go by its own name: it is as unique, and as proven.
  const agentId = peer.agentId === podName ? nodeName : peer.agentId;
  const names = [nodeName];
  const proven = (granted: Identifiers) => ({ ids: names, names, granted });
  const claimant = { agentId, identifiers: peer.identifiers };
  let claim = unprovenClaim(claimant, proven(NO_IDENTIFIERS));
  let doubt = "";
  if (claim !== undefined) {
    try {
      const granted = await addresses.of(nodeName);
      claim = unprovenClaim(claimant, proven(granted));
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      doubt = ` (its Node could not be read: ${error.message})`;
    }
  }
  if (claim === undefined) return ADMITTED;
  observer.mismatched();
  const seen = `its token is bound to node ${JSON.stringify(nodeName)} and ` +
    `does not cover ${claim}`;
  if (isNew(warned, `${nodeName}/${peer.agentId}`)) {
    const remark = binding === "warn"
      ? " (refused with --node-binding=enforce)"
      : "";
    observer.warn(
      `agent ${JSON.stringify(peer.agentId)} may be somebody else: ${seen}` +
        `${remark}${doubt}`,
    );
  }
  if (binding === "warn") return ADMITTED;
  return refuse(
    `Cannot admit this agent: ${seen}; start it with --agent-id and ` +
      "identifiers as its node is called, or the server with " +
      "--node-binding=warn",
  );
}

function isNew(warned: Set<string>, key: string): boolean {
  if (warned.has(key)) return false;
  if (warned.size >= WARNED_AGENTS_MAX) warned.clear();
  warned.add(key);
  return true;
}

function isUnavailable(error: unknown): error is Error {
  return error instanceof KubernetesError ||
    error instanceof KubernetesConfigError ||
    error instanceof TooManyReviewsError;
}

function outcomeOf(verdict: Verdict): string {
  if (verdict.admitted) return "admitted";
  return verdict.code === StatusCode.UNAUTHENTICATED ? "invalid" : "denied";
}

function accountName({ namespace, serviceAccount }: TokenRequirement): string {
  return `${namespace}/${serviceAccount}`;
}
