/**
 * Authorizes agents by certificates of our own authority: one node, one key, and
 * nothing that was not granted. Reads the node's record each time.
 *
 * @module
 */

import { StatusCode } from "../../proto/grpc/status.ts";
import type { Code } from "../../proto/codes/codes.ts";
import { X509Certificate } from "node:crypto";
import {
  type Identifiers,
  IdentifiersError,
  joinedIdentifiers,
  parseIdentifiers,
} from "../../proto/peer/identifiers.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import type { LinkPeer } from "../../proto/link/link.ts";
import type { Log } from "../../platform/log/log.ts";
import {
  ADMITTED,
  type Authorizer,
  type LinkDecision,
  refuse,
} from "../links/authorizer.ts";
import { type Authorities, issuerOf } from "./authorities.ts";
import { unprovenClaim } from "./claims.ts";
import {
  isNumericName,
  NODE_SUBJECT_PREFIX,
} from "../../proto/identity/node_name.ts";
import { nameKey } from "../../proto/peer/normal_form.ts";
import type { NodeRecord, NodeStore } from "./node_store.ts";
import { logState, StoreError } from "../../neighbours/store/store_error.ts";

/** Names of a node beside those that its record grants. */
export type Grants = (node: string) => Identifiers;

/** The facts for a decision. */
export interface NodeAuthorizerOptions {
  readonly nodes: NodeStore;
  readonly authorities: () => Authorities;
  /** Certificates of other authorities pass the handshake, too. */
  readonly trustsOthers: boolean;
  readonly log: Pick<Log, "error">;
  readonly grants: Grants;
  /**
   * The node as which a link was admitted. A link outlives the authority of its
   * certificate: later only the node's record counts.
   */
  readonly admitted: WeakMap<PeerIdentity, string>;
}

/** Whether a certificate is of one of our authorities, and whose. */
export type OwnCertificate =
  /** It belongs to another agent, or there is none. */
  | { readonly isOurs: false }
  /** `node` is absent when it is not a node's, such as the server's. */
  | { readonly isOurs: true; readonly node?: string };

/** Our classes of certificates that passed the handshake. */
export function ownCertificate(
  { authorities, trustsOthers }: Pick<
    NodeAuthorizerOptions,
    "authorities" | "trustsOthers"
  >,
  { certificate, commonName }: PeerIdentity,
): OwnCertificate {
  if (certificate === undefined) return { isOurs: false };
  const x509 = new X509Certificate(
    certificate.der as Uint8Array<ArrayBuffer>,
  );
  if (issuerOf(authorities(), x509, !trustsOthers) === undefined) {
    return { isOurs: false };
  }
  if (!commonName.startsWith(NODE_SUBJECT_PREFIX)) return { isOurs: true };
  const node = commonName.slice(NODE_SUBJECT_PREFIX.length);
  return { isOurs: true, node };
}

/** Decides about every certificate of our authority, with yes or no. */
export function nodeAuthorizer(options: NodeAuthorizerOptions): Authorizer {
  return ({ peer }) => {
    const own = ownCertificate(options, peer.identity);
    if (!own.isOurs) return undefined;
    if (own.node === undefined) {
      return refuse(
        "Cannot admit this agent: its certificate is not a node's; join with " +
          "a token of `tunnel token create`",
      );
    }
    const { node } = own;
    const decide = () => {
      const decision = readOrRefuse(
        options,
        () => authorizeNode(options, peer, node),
      );
      if (decision?.admitted) options.admitted.set(peer.identity, node);
      return decision;
    };
    const { publicKeySha256 } = peer.identity.certificate!;
    if (!isWorthAsking(options.nodes, node, publicKeySha256)) return decide();
    return askNow(options.nodes, node).then(decide);
  };
}

/**
 * It may just have joined, or been approved, on another server, and be here
 * sooner than the report of that.
 */
function isWorthAsking(
  nodes: NodeStore,
  node: string,
  publicKeySha256: string,
): boolean {
  if (!nodes.mayLag) return false;
  try {
    const known = nodes.read(node);
    return standingProblem(node, known, publicKeySha256) !== undefined;
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return true;
  }
}

/** When the store cannot be asked, the last known record decides. */
async function askNow(nodes: NodeStore, node: string): Promise<void> {
  try {
    await nodes.readNow(node);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
  }
}

/** Decides about a link that stands: whether it would still be admitted. */
export function standingLinkAuthorizer(
  options: NodeAuthorizerOptions,
): Authorizer {
  const authorizeOthers = reservedNameAuthorizer(options);
  return (candidate) => {
    const node = options.admitted.get(candidate.peer.identity);
    if (node === undefined) return authorizeOthers(candidate);
    return readOrRefuse(
      options,
      () => authorizeNode(options, candidate.peer, node),
    );
  };
}

/**
 * Refuses names of joined nodes to all others: an agent that is known by a
 * foreign certificate or not at all must not collect a node's connections.
 */
export function reservedNameAuthorizer(
  options: NodeAuthorizerOptions,
): Authorizer {
  return ({ peer }) => {
    const { host, uid } = peer.identifiers;
    const names = [peer.agentId, ...host, ...uid];
    return readOrRefuse(options, () => {
      const taken = names.find((name) =>
        [nameKey(name), name.toLowerCase()].some((spelling) =>
          options.nodes.read(spelling) !== undefined
        )
      );
      if (taken === undefined) return undefined;
      return refuse(
        `Cannot admit this agent as ${taken}: that is the name of a node ` +
          "that joined, and this is not its certificate; use another name, " +
          `or \`tunnel node forget ${nameKey(taken)}\``,
      );
    });
  };
}

function authorizeNode(
  { nodes, grants }: NodeAuthorizerOptions,
  peer: LinkPeer,
  node: string,
): LinkDecision {
  const record = nodes.read(node);
  const standing = standingProblem(
    node,
    record,
    peer.identity.certificate!.publicKeySha256,
  );
  if (standing !== undefined) {
    return refuse(
      `Cannot admit ${node}: ${standing.problem}`,
      StatusCode.PERMISSION_DENIED,
      standing.tunnelCode,
    );
  }
  const granted = joinedIdentifiers([
    parseIdentifiers(record!.identifiers, "server"),
    grants(node),
  ]);
  // Nodes that joined in former times may be called like an address. It is
  // theirs for being granted, not for being a name.
  const names = isNumericName(node) ? [] : [node];
  const claim = unprovenClaim(peer, { ids: [node], names, granted });
  if (claim === undefined) return ADMITTED;
  if (names.length === 0) {
    return refuse(
      `Cannot admit ${node}: that name reads as an address, which its ` +
        `certificate does not cover (${claim}); grant it on the server with ` +
        `\`tunnel node approve ${node} --identifiers ipv4=ADDRESS\`, or join ` +
        "again by another name",
    );
  }
  return refuse(
    `Cannot admit ${node}: its certificate does not cover ${claim}; use ` +
      `${node} as name, and grant other identifiers on the server with ` +
      `\`tunnel node approve ${node} --identifiers …\``,
    StatusCode.PERMISSION_DENIED,
    "TUN320",
  );
}

/** What keeps a node from speaking for its name. */
export interface Standing {
  /** The end of a sentence. */
  readonly problem: string;
  readonly tunnelCode: Code;
}

/**
 * Why a node may not speak for its name.
 *
 * @param publicKeySha256 Hash of the proven key.
 */
export function standingProblem(
  node: string,
  record: NodeRecord | undefined,
  publicKeySha256: string,
): Standing | undefined {
  if (record === undefined) {
    return {
      problem: "this server knows no such node (it was forgotten, or joined " +
        "another server); join again with a new token",
      tunnelCode: "TUN312",
    };
  }
  if (record.publicKeySha256 !== publicKeySha256) {
    return {
      problem: "that name is bound to another key; if the node was set up " +
        `anew, \`tunnel node forget ${node}\` on the server, then join again`,
      tunnelCode: "TUN307",
    };
  }
  if (record.state === "revoked") {
    const why = record.reason ? ` (${record.reason})` : "";
    return {
      problem: `the node was revoked${why}; \`tunnel node approve ${node}\` ` +
        "on the server takes that back",
      tunnelCode: "TUN311",
    };
  }
  if (record.state === "pending") {
    return {
      problem: "the node waits for approval; `tunnel node approve " +
        `${node}\` on the server`,
      tunnelCode: "TUN310",
    };
  }
  return undefined;
}

function readOrRefuse(
  { log }: NodeAuthorizerOptions,
  decide: () => LinkDecision | undefined,
): LinkDecision | undefined {
  try {
    return decide();
  } catch (error) {
    if (!(error instanceof StoreError || error instanceof IdentifiersError)) {
      throw error;
    }
    logState(log, error);
    return refuse(
      "Cannot admit this agent: the server cannot read what it knows about " +
        "its nodes; see the server's log",
    );
  }
}
