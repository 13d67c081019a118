/**
 * How the agent port knows agents, and they it: by our own identity, by files
 * of a foreign authority, or by both side by side.
 *
 * @module
 */

import type { CountingTools } from "../../platform/program/tools.ts";
import {
  type CredentialFiles,
  pairFiles,
} from "../../net/tls/trust/credentials.ts";
import {
  NODE_SUBJECT_PREFIX,
  TUNNEL_SERVER_NAME,
} from "../../proto/identity/node_name.ts";
import { NO_IDENTIFIERS } from "../../proto/peer/identifiers.ts";
import type { AgentLink, LinkPeer } from "../../proto/link/link.ts";
import { nameKey } from "../../proto/peer/normal_form.ts";
import {
  ADMITTED,
  anonymousAuthorizer,
  authorize,
  type Authorizer,
  isAnonymous,
} from "../links/authorizer.ts";
import type { ServerOptions } from "../options.ts";
import { bindingAuthorizer } from "./binding_authorizer.ts";
import { counted } from "../metrics/metric_families.ts";
import type { Grants } from "./node_authorizer.ts";
import type {
  ServerIdentity,
  ServerIdentityEnvironment,
} from "./server_identity.ts";

/** The agent port's certificate and trust, and its authorizers. */
export interface AgentTrust {
  /** The server's own authority; absent when files define all trust. */
  readonly identity?: ServerIdentity;
  readonly files: CredentialFiles;
  /** Shown instead to clients that send a name (SNI). */
  readonly named?: { readonly name: string; readonly files: CredentialFiles };
  /** Asked in this order. */
  readonly authorizers: readonly Authorizer[];
}

/**
 * Ends links and similar streams that our own authority would no longer admit.
 *
 * @param node The node whose record has changed; absent: all.
 */
export function reconsider(
  { identity }: AgentTrust,
  links: Iterable<Pick<AgentLink, "peer" | "close">>,
  node?: string,
): void {
  if (identity === undefined) return;
  const authorizers = [...identity.standing, () => ADMITTED];
  for (const link of [...links]) {
    if (node !== undefined && !isAbout(link.peer, node)) continue;
    const decision = authorize(authorizers, { peer: link.peer, token: "" });
    if (decision instanceof Promise) continue;
    if (decision !== undefined) link.close(decision.message);
  }
}

/**
 * Unauthenticated peers may have announced identifiers that were just granted
 * to it.
 */
function isAbout(peer: LinkPeer, node: string): boolean {
  return isAnonymous(peer.identity) ||
    peer.identity.commonName === NODE_SUBJECT_PREFIX + node ||
    [peer.agentId, ...peer.identifiers.host, ...peer.identifiers.uid]
      .some((name) => name === node || nameKey(name) === node);
}

/**
 * Opens what the options ask for.
 *
 * @param tokenAuthenticators About agents that show a token; asked behind our own.
 * @param grants What a policy lets nodes claim, by name.
 * @param state Where the identity is kept; absent: in its directory.
 * @throws {StoreError}
 */
export async function openAgentTrust(
  agents: ServerOptions["agents"],
  { log, metrics }: Pick<CountingTools, "log" | "metrics">,
  tokenAuthenticators: readonly Authorizer[] = [],
  grants: Grants = () => NO_IDENTIFIERS,
  state?: ServerIdentityEnvironment["state"],
): Promise<AgentTrust> {
  const { keyPair, caFile } = agents;
  const identity = agents.identity === undefined
    ? undefined
    // Loaded when wanted: reading and making certificates is a lot of code.
    : await (await import("./server_identity.ts")).ServerIdentity
      .open(agents.identity, {
        log,
        metrics,
        grants,
        trustsOthers: caFile !== undefined,
        admitsAnonymous: agents.allowAnonymous,
        state,
      });
  const authorizers = [
    ...identity?.authorizers ?? [],
    ...tokenAuthenticators,
    bindingAuthorizer(agents.nodeBinding ?? "warn", {
      mismatched: counted(
        metrics,
        "node_binding_mismatches",
        "Links whose agent claims names that its certificate does not say.",
      ),
      warn: (message) => log.warn(message, { code: "TUN333" }),
    }, grants),
    ...identity?.anonymousAuthorizers ?? [],
    anonymousAuthorizer(agents.allowAnonymous, howToJoin(identity, caFile)),
  ];
  const ca = [identity?.files.ca ?? [], caFile ?? []].flat();
  const pair = keyPair && { ...pairFiles(keyPair), ca };
  if (identity === undefined) {
    if (pair !== undefined) return { files: pair, authorizers };
    throw new TypeError("Cannot serve agents: no key pair and no identity");
  }
  const own = { ...identity.files, ca };
  if (pair === undefined) return { identity, files: own, authorizers };
  // A peer that knows another authority asks for another name.
  const named = { name: TUNNEL_SERVER_NAME, files: own };
  return { identity, files: pair, named, authorizers };
}

function howToJoin(
  identity: ServerIdentity | undefined,
  caFile: string | undefined,
): string {
  const foreign = "wanted one of the server's --cluster-ca-cert; set " +
    "--agent-cert and --agent-key";
  if (identity === undefined) return foreign;
  const own = "wanted one of a node that joined; `tunnel token create` on " +
    "the server, then `tunnel agent --join TOKEN` here";
  return caFile === undefined ? own : `${own}; or ${foreign}`;
}
