/**
 * A server's work with an API server: it has agents' tokens reviewed, approves
 * their certificate requests, and publishes its lease. This file joins the
 * parts of the folder.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { unawaited } from "../../platform/errors/internal_errors.ts";
import { connectKubernetes } from "../../neighbours/kubernetes/connect.ts";
import { reviewToken } from "../../neighbours/kubernetes/token_review.ts";
import { lineKey } from "../../platform/log/line_key.ts";
import type { CountingTools } from "../../platform/program/tools.ts";
import type { KubernetesServerOptions, NodeBinding } from "../options.ts";
import type { Authorizer } from "../links/authorizer.ts";
import { CsrApprover } from "./csr_approver.ts";
import { counted, countLeases } from "../metrics/metric_families.ts";
import { NodeAddresses, PodNodes } from "./cluster_nodes.ts";
import { ServerLease } from "../../neighbours/kubernetes/server_lease.ts";
import { tokenAuthenticator } from "./token_authenticator.ts";
import { TokenReviews } from "./token_reviews.ts";

/** Within the 10 s that agents wait for their link. */
const REVIEW_TIMEOUT_MS = 7_000;

/** One part of a server's work with an API server. */
export interface ServerKubernetes {
  /** Decide about agents that show a token. */
  readonly authenticators: readonly Authorizer[];
  /** The server listens: others may count it. */
  start(): void;
  /** The server drains: others are not to count it any more. */
  retire(): void;
  /** Settles when the published entry is removed, or cannot be. */
  stop(): Promise<void>;
}

/**
 * Prepares everything; nothing is sent yet.
 *
 * @throws {NeighbourConfigError}
 */
export function openKubernetes(
  options: KubernetesServerOptions,
  server: { readonly serverId: string; readonly nodeBinding: NodeBinding },
  { log, metrics, timers }: CountingTools,
): ServerKubernetes {
  const client = connectKubernetes(options, timers);
  const lines = linesIn(log);
  const { agentTokens, lease, csrApprover } = options;
  const addresses = new NodeAddresses(client, timers);
  const publishing = lease && new ServerLease({
    ...lease,
    client,
    serverId: server.serverId,
    timers,
    wallClock: Date.now,
    observer: { ...lines, ...countLeases(metrics) },
  });
  const approver = csrApprover && new CsrApprover({
    ...csrApprover,
    client,
    addresses,
    timers,
    random: Math.random,
    observer: { ...lines, decided: countCsrDecisions(metrics) },
  });
  const authenticators = agentTokens === undefined ? [] : [tokenAuthenticator({
    wanted: agentTokens,
    reviews: new TokenReviews(
      (token) =>
        reviewToken(client, token, agentTokens.audience, REVIEW_TIMEOUT_MS),
      timers,
    ),
    addresses,
    pods: new PodNodes(client, timers),
    binding: server.nodeBinding,
    wallClock: Date.now,
    observer: {
      ...lines,
      ...countReviews(metrics),
    },
  })];
  // Once: a server of the same id that follows publishes one under that name.
  let takenBack: Promise<void> | undefined;
  const takeBack = () => takenBack ??= publishing?.stop();
  return {
    authenticators,
    start: () => {
      publishing?.start();
      approver?.start();
    },
    retire: () => unawaited("task", Promise.resolve(takeBack())),
    stop: async () => {
      await Promise.all([takeBack(), approver?.stop()]);
      client[Symbol.dispose]();
    },
  };
}

function linesIn(log: CountingTools["log"]) {
  return {
    event: (line: string) => log.event(line, {}, lineKey(line)),
    detail: (line: string) => log.detail(line),
    warn: (line: string, code: Code) => log.warn(line, { code }, lineKey(line)),
  };
}

function countCsrDecisions(metrics: CountingTools["metrics"]) {
  return counted(
    metrics,
    "csr_decisions",
    "CertificateSigningRequests looked at, by outcome: approved, denied, " +
      "waiting, ignored or failed.",
    "outcome",
  );
}

function countReviews(metrics: CountingTools["metrics"]) {
  return {
    reviewed: counted(
      metrics,
      "token_reviews",
      "Agents that showed a token, by outcome: admitted, invalid, denied or " +
        "unavailable.",
      "outcome",
    ),
    mismatched: counted(
      metrics,
      "token_binding_mismatches",
      "Links whose agent claims names that its token's node has not got.",
    ),
  };
}
