/**
 * Ids of authorities, by which nodes report which ones they trust and servers
 * store it.
 *
 * @module
 */

/** Of the SHA-256 of an authority's public key, in hex. */
export const AUTHORITY_ID_LENGTH = 16;

/** A change of authorities has two; a longer list of a node is ignored. */
const IDS_MAX = 8;

const ID = /^[0-9a-f]{16}$/;

/** The id of an authority with this key: in lists, file names and records. */
export function authorityIdOf(
  { publicKeySha256 }: { readonly publicKeySha256: string },
): string {
  return publicKeySha256.slice(0, AUTHORITY_ID_LENGTH);
}

/**
 * The authorities that a node trusts; `undefined` when it is no list of ids.
 */
export function readAuthorityIds(
  said: readonly string[],
): readonly string[] | undefined {
  const isList = said.length <= IDS_MAX && said.every((id) => ID.test(id));
  return isList ? [...new Set(said)].sort() : undefined;
}
