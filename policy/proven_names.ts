/**
 * The names that a certificate proves.
 *
 * @module
 */

import type { PeerIdentity } from "../proto/peer/peer_identity.ts";
import { isNumericName } from "../proto/identity/node_name.ts";
import { addressOf, nameKey } from "../proto/peer/normal_form.ts";

/** Words in front of a node's name in certificates: Kubernetes' and ours. */
const NAME_PREFIX = /^(?:system:node:|node:)/;

/** The common name, without what stands in front of nodes' names. */
export function nodeNameOf({ commonName }: PeerIdentity): string {
  return commonName.replace(NAME_PREFIX, "");
}

/**
 * What the holder of a certificate may be called as a node: its common name
 * without what stands in front of nodes' names, then its DNS names. An address
 * among these proves no address.
 *
 * @returns `undefined` when none was shown: a token may prove one.
 */
export function provenNames(
  identity: PeerIdentity,
): readonly string[] | undefined {
  if (identity.kind === "anonymous") return undefined;
  const dns = valuesOf(identity, "DNS:").map((name) => name.toLowerCase())
    .filter((name) => !isNumericName(name));
  return [nodeNameOf(identity), ...dns].filter((name) => name !== "");
}

/** The addresses that a certificate is for; they are its names for nobody. */
export function provenAddresses(identity: PeerIdentity): readonly string[] {
  const common = nodeNameOf(identity);
  const inName = addressOf(common) === undefined ? [] : [nameKey(common)];
  return [...inName, ...valuesOf(identity, "IP Address:").map(nameKey)];
}

function valuesOf({ names }: PeerIdentity, kind: string): string[] {
  return names.filter((name) => name.startsWith(kind))
    .map((name) => name.slice(kind.length));
}
