/**
 * Authenticates agents by the ServiceAccount token that they show, as
 * Konnectivity's server does, and by the node that the token is bound to.
 *
 * A token proves a ServiceAccount, which all agents share. Since Kubernetes
 * 1.30 it also says on which node its Pod runs; before that the API server is
 * asked. So an agent that claims another node's name or address is recognized,
 * and a token without a Pod proves no claim at all. Agents of Konnectivity have
 * chosen their own ids for years, so a false claim is shown and not refused,
 * unless `--node-binding=enforce` is set.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { sourceOf } from "../../net/admission/source.ts";
import { isKubernetesTrouble } from "../../neighbours/kubernetes/errors.ts";
import type { ReviewedToken } from "../../neighbours/kubernetes/token_review.ts";
import { StatusCode } from "../../proto/grpc/status.ts";
import {
  type Identifiers,
  NO_IDENTIFIERS,
} from "../../proto/peer/identifiers.ts";
import type { LinkPeer } from "../../proto/link/link.ts";
import type { NodeBinding, TokenRequirement } from "../options.ts";
import { unprovenClaim } from "../identity/claims.ts";
import {
  ADMITTED,
  type Authorizer,
  isAnonymous,
  type LinkDecision,
  refuse,
  SaidOnce,
} from "../links/authorizer.ts";
import type { BoundPod } from "./cluster_nodes.ts";
import { TooManyReviewsError } from "./token_reviews.ts";
import { TOKEN_LENGTH_MAX } from "../../neighbours/kubernetes/access.ts";

/** Longest text of a token's user that is quoted. */
const QUOTE_LENGTH_MAX = 253;

/** See {@linkcode tokenAuthenticator}. */
export interface TokenAuthenticatorOptions {
  readonly wanted: TokenRequirement;
  readonly reviews: {
    of(token: string, source: string): Promise<ReviewedToken>;
  };
  /** Finds the node of a Pod whose token does not name it. */
  readonly pods: { of(pod: BoundPod): Promise<string | undefined> };
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
    warn(message: string, code: Code): void;
  };
}

/**
 * Decides about agents that show a token, and about agents with neither token
 * nor certificate.
 */
export function tokenAuthenticator(
  options: TokenAuthenticatorOptions,
): Authorizer {
  const said = new SaidOnce();
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
    return authenticate(options, peer, token, said);
  };
}

async function authenticate(
  options: TokenAuthenticatorOptions,
  peer: LinkPeer,
  token: string,
  said: SaidOnce,
): Promise<LinkDecision> {
  const { reviews, wanted, observer, wallClock } = options;
  const flaw = flawOf(token, wanted, wallClock());
  if (flaw !== undefined) {
    const decision = decideReviewed(flaw, wanted);
    observer.reviewed(outcomeOf(decision));
    return decision;
  }
  let found: ReviewedToken;
  try {
    found = await reviews.of(token, sourceOf(peer.remoteAddress));
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    observer.reviewed("unavailable");
    observer.warn(
      `cannot have an agent's token reviewed: ${error.message}`,
      "TUN802",
    );
    return refuse(
      "Cannot check this agent's token: the server cannot ask the Kubernetes " +
        "API server now; its log says why",
      StatusCode.UNAVAILABLE,
    );
  }
  const decision = decideReviewed(found, wanted);
  observer.reviewed(outcomeOf(decision));
  if (!decision.admitted || found.kind !== "service-account") return decision;
  return await authorizeNode(options, peer, found, said);
}

/** A ServiceAccount's usual name; every other user in quotes. */
function userName(username: string): string {
  const account = /^system:serviceaccount:([a-z0-9.-]+):([a-z0-9.-]+)$/;
  const match = account.exec(username);
  return match === null
    ? JSON.stringify(username)
    : `ServiceAccount ${match[1]}/${match[2]}`;
}

function decideReviewed(
  found: ReviewedToken,
  wanted: TokenRequirement,
): LinkDecision {
  if (found.kind === "invalid") {
    return refuse(
      `Cannot admit this agent: its token is not valid here (${found.why}); ` +
        "mount a token for audience " +
        `"${wanted.audience}" of ServiceAccount ${accountName(wanted)}`,
      StatusCode.UNAUTHENTICATED,
    );
  }
  const seen = found.kind === "other-user"
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
async function authorizeNode(
  options: TokenAuthenticatorOptions,
  peer: LinkPeer,
  account: ServiceAccountToken,
  said: SaidOnce,
): Promise<LinkDecision> {
  const { node, seen, doubt } = await nodeOf(options, account);
  const doubts = doubt === undefined ? [] : [doubt];
  const { podName } = account;
  // A Pod may go by its own name: it is as unique, and as proven.
  const ids = [node, podName].filter((name) => name !== undefined);
  const names = node === undefined ? [] : [node];
  const unproven = (granted: Identifiers) =>
    unprovenClaim(peer, { ids, names, granted });
  let claim = unproven(NO_IDENTIFIERS);
  if (claim !== undefined && node !== undefined) {
    try {
      claim = unproven(await options.addresses.of(node));
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      doubts.push(`its Node could not be read: ${error.message}`);
    }
  }
  if (claim === undefined) return ADMITTED;
  options.observer.mismatched();
  const what = `${seen} and does not cover ${claim}`;
  if (said.isNew(`${node ?? podName ?? ""}/${peer.agentId}`)) {
    const remark = options.binding === "warn"
      ? " (refused with --node-binding=enforce)"
      : "";
    options.observer.warn(
      `agent ${JSON.stringify(peer.agentId.slice(0, QUOTE_LENGTH_MAX))} may ` +
        `be another node: ${what}${remark}` +
        doubts.map((text) => ` (${text})`).join(""),
      "TUN333",
    );
  }
  if (options.binding === "warn") return ADMITTED;
  const advice = node === undefined ? WITHOUT_NODE : WITH_NODE;
  return refuse(`Cannot admit this agent: ${what}; ${advice}`);
}

type ServiceAccountToken = Extract<
  ReviewedToken,
  { kind: "service-account" }
>;

const WITH_NODE = "start it with --agent-id and identifiers as its node is " +
  "called, or the server with --node-binding=warn";

const WITHOUT_NODE = "give it a token that is bound to its Pod, by a " +
  "projected volume (of Kubernetes 1.30 or later, or let the server get " +
  "pods), or a certificate, or start the server with --node-binding=warn";

/** Which node a token is bound to, by itself or by its Pod. */
async function nodeOf(
  { pods }: TokenAuthenticatorOptions,
  { namespace, nodeName, podName, podUid }: ServiceAccountToken,
): Promise<{
  readonly node?: string;
  /** A part of a sentence. */
  readonly seen: string;
  readonly doubt?: string;
}> {
  if (nodeName !== undefined) return boundTo(nodeName);
  if (podName === undefined || podUid === undefined) {
    return { seen: "its token names no node, for it is bound to no Pod," };
  }
  const seen = `its token is bound to Pod ${JSON.stringify(podName)}, names ` +
    "no node";
  try {
    const node = await pods.of({ namespace, podName, podUid });
    return node === undefined ? { seen } : boundTo(node);
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return { seen, doubt: `its Pod could not be read: ${error.message}` };
  }
}

function boundTo(node: string) {
  return { node, seen: `its token is bound to node ${JSON.stringify(node)}` };
}

function isUnavailable(error: unknown): error is Error {
  return isKubernetesTrouble(error) ||
    error instanceof TooManyReviewsError;
}

function outcomeOf(decision: LinkDecision): string {
  if (decision.admitted) return "admitted";
  return decision.code === StatusCode.UNAUTHENTICATED ? "invalid" : "denied";
}

function accountName({ namespace, serviceAccount }: TokenRequirement): string {
  return `${namespace}/${serviceAccount}`;
}

// The claims of a token. They are not verified: they only tell in advance that
// the API server would refuse.

/**
 * How far the clocks of this machine and the API server may be apart; a token is
 * not refused for less. Milliseconds.
 */
export const TOKEN_CLOCK_SKEW_MS: number = 10 * 60_000;

/** Names in a `sub`, before the namespace. */
const SERVICE_ACCOUNT = "system:serviceaccount:";

/** The visible fault of a token. */
export type Flaw =
  /** The token itself says that it belongs to another account. */
  | { readonly kind: "other-user"; readonly username: string }
  /** It cannot be good; `why` is a part of a sentence. */
  | { readonly kind: "invalid"; readonly why: string };

/**
 * Why no API server would accept `token` here, if that can be seen without
 * asking.
 *
 * @param nowMs Since 1970.
 */
export function flawOf(
  token: string,
  { namespace, serviceAccount, audience }: TokenRequirement,
  nowMs: number,
): Flaw | undefined {
  const claims = claimsOf(token);
  if (claims === undefined) {
    return { kind: "invalid", why: "it is not a ServiceAccount's token" };
  }
  const { sub, aud, exp } = claims;
  if (typeof sub !== "string" || !sub.startsWith(SERVICE_ACCOUNT)) {
    return { kind: "invalid", why: "it names no ServiceAccount" };
  }
  if (sub !== `${SERVICE_ACCOUNT}${namespace}:${serviceAccount}`) {
    return { kind: "other-user", username: sub };
  }
  const audiences = typeof aud === "string" ? [aud] : aud;
  // Tokens from a Secret name no audience; the API server knows what they are
  // for.
  if (Array.isArray(audiences) && !audiences.includes(audience)) {
    const why = `it is not meant for audience "${audience}"`;
    return { kind: "invalid", why };
  }
  const isOver = typeof exp === "number" &&
    exp * 1_000 < nowMs - TOKEN_CLOCK_SKEW_MS;
  return isOver ? { kind: "invalid", why: "it has expired" } : undefined;
}

/**
 * Claims of a JSON Web Token; the signature is not checked here (RFC 7515
 * §3.1).
 */
function claimsOf(token: string): Record<string, unknown> | undefined {
  if (token.length > TOKEN_LENGTH_MAX) return undefined;
  const parts = token.split(".");
  if (parts.length !== 3 || parts.includes("")) return undefined;
  const [header, payload] = parts.map(objectOf);
  return typeof header?.["alg"] === "string" ? payload : undefined;
}

function objectOf(part: string): Record<string, unknown> | undefined {
  try {
    const bytes = Uint8Array.fromBase64(part, { alphabet: "base64url" });
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    const isObject = typeof value === "object" && value !== null &&
      !Array.isArray(value);
    return isObject ? value as Record<string, unknown> : undefined;
  } catch {
    // The text may be neither base64 nor JSON.
    return undefined;
  }
}
