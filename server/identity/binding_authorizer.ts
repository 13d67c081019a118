/**
 * Authorizes agents by certificates of a foreign authority, such as
 * Konnectivity's.
 *
 * Whether a certificate names its node is that authority's custom: many agents
 * share one certificate, and then nothing distinguishes them. So a claim that the
 * certificate does not cover is shown, and refused only when that was asked for.
 *
 * @module
 */

import { NO_IDENTIFIERS } from "../../proto/peer/identifiers.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import type { LinkPeer } from "../../proto/link/link.ts";
import {
  ADMITTED,
  type Authorizer,
  isAnonymous,
  refuse,
  SaidOnce,
} from "../links/authorizer.ts";
import { type ProvenNames, unprovenClaim } from "./claims.ts";
import type { Grants } from "./node_authorizer.ts";
import {
  nodeNameOf,
  provenAddresses,
  provenNames,
} from "../../policy/subject.ts";
import type { NodeBinding } from "../options.ts";

/** What `bindingAuthorizer` reports. */
export interface BindingObserver {
  /** An agent claims what its certificate does not say. */
  mismatched(): void;
  /** The same, once per agent. */
  warn(message: string): void;
}

/** Decides about every agent that shows a certificate. */
export function bindingAuthorizer(
  binding: NodeBinding,
  observer: BindingObserver,
  grants: Grants = () => NO_IDENTIFIERS,
): Authorizer {
  const said = new SaidOnce();
  return ({ peer }) => {
    if (isAnonymous(peer.identity)) return undefined;
    const claim = unprovenClaim(peer, provenBy(peer.identity, grants));
    if (claim === undefined) return ADMITTED;
    observer.mismatched();
    const { commonName } = peer.identity;
    const seen = `its certificate is for ${JSON.stringify(commonName)} and ` +
      `does not say ${claim}`;
    if (binding === "enforce") {
      return refuse(
        `Cannot admit this agent: ${seen}; issue it a certificate with that ` +
          "name, or run the server with --node-binding=warn",
      );
    }
    if (said.isNew(keyOf(peer))) {
      observer.warn(
        `agent ${JSON.stringify(peer.agentId)} may be another agent: ${seen} ` +
          "(refused with --node-binding=enforce)",
      );
    }
    return ADMITTED;
  };
}

/** The default id of Konnectivity's agents. */
const RANDOM_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * A random id names no node: reported once for all that share a certificate.
 */
function keyOf({ agentId, identity }: LinkPeer): string {
  const who = RANDOM_ID.test(agentId) ? "a random id" : agentId;
  return `${identity.fingerprint}/${who}`;
}

/**
 * A certificate's names, and the grants of its holder. An authority that puts
 * an address in a common name vouches for that, too.
 */
function provenBy(identity: PeerIdentity, grants: Grants): ProvenNames {
  const names = provenNames(identity) ?? [];
  const addresses = provenAddresses(identity);
  const { ipv4, ipv6, cidr, defaultRoute } = grants(nodeNameOf(identity));
  return {
    ids: [...names, ...addresses],
    names,
    granted: {
      ...NO_IDENTIFIERS,
      ipv4: [...addresses, ...ipv4],
      ipv6: [...addresses, ...ipv6],
      cidr,
      defaultRoute,
    },
  };
}
