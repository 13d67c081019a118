/**
 * The names that a certificate proves.
 *
 * @module
 */

import type { PeerIdentity } from "../../proto/link/link.ts";

/** Words in front of a node's name in certificates: Kubernetes' and ours. */
const NAME_PREFIX = /^(?:system:node:|node:)/;

/**
 * What the holder of a certificate may be called as a node: its common name
 * without what stands in front of nodes' names, then its DNS names.
 *
 * @returns `undefined` when none was shown: a token may prove one.
 */
export function provenNames(
  { kind, commonName, names }: PeerIdentity,
): readonly string[] | undefined {
  if (kind === "anonymous") return undefined;
  const dns = names.flatMap((name) => /^DNS:(.+)$/.exec(name)?.[1] ?? []);
  return [commonName.replace(NAME_PREFIX, ""), ...dns]
    .filter((name) => name !== "");
}
