/**
 * Nodes are no callers. In many clusters one CA signs kubelets' certificates
 * and kube-apiserver's alike, and whoever names it as the callers' CA must not
 * thereby let every node run commands on all others.
 *
 * @module
 */

import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import { NODE_ORGANIZATION } from "../identity/node_certificate.ts";

/** Kubernetes' nodes, and those that joined us. */
const NODE_GROUPS: ReadonlySet<string> = new Set([
  "system:nodes",
  NODE_ORGANIZATION,
]);

/** Why `caller` may ask for nothing at all; `undefined`: it may. */
export function nodeRefusal(
  { certificate, commonName }: PeerIdentity,
): string | undefined {
  const group = certificate?.organizations.find((name) =>
    NODE_GROUPS.has(name)
  );
  if (group === undefined) return undefined;
  return `Cannot serve CN=${commonName}: its certificate is a node's ` +
    `(O=${group}), and nodes have no say over each other`;
}
