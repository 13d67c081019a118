/**
 * The fields of identity calls, what they sign, how they end, and the ids of
 * the authorities that they name.
 *
 * @module
 */

import type { Enrolment, Pending } from "./identity_messages.ts";

/**
 * The longest request and answer. A certificate signing request has less than 1
 * KiB, a bundle of two authorities 2 KiB; an unauthenticated peer gets no more.
 */
export const IDENTITY_MESSAGE_BYTES_MAX = 65_536;

/** What Join and Renew end with: exactly one of the two. */
export type EnrolmentOutcome =
  | { readonly enrolment: Enrolment; readonly pending?: undefined }
  | { readonly pending: Pending; readonly enrolment?: undefined };

// Ids of authorities, by which nodes report which ones they trust and servers
// store it.

/** A prefix of the SHA-256 of an authority's public key, in hex. */
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
 * The authorities that a node trusts; `undefined` when the text is no list of
 * ids.
 */
export function readAuthorityIds(
  said: readonly string[],
): readonly string[] | undefined {
  const isList = said.length <= IDS_MAX && said.every((id) => ID.test(id));
  return isList ? [...new Set(said)].sort() : undefined;
}

// The statement that a node signs to renew without a valid certificate.
//
// It contains a nonce, so that it cannot be replayed, and the request, so that
// it is valid for nothing else.

const PURPOSE = new TextEncoder().encode("tunnel renew\n");

/**
 * The bytes under the signature `RenewRequest.proof`.
 *
 * @param nonce As Challenge gave it.
 * @param csrSha256 SHA-256 of `RenewRequest.csr`.
 */
export function renewalStatement(
  nonce: Uint8Array,
  csrSha256: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const statement = new Uint8Array(
    PURPOSE.length + nonce.length + csrSha256.length,
  );
  statement.set(PURPOSE);
  statement.set(nonce, PURPOSE.length);
  statement.set(csrSha256, PURPOSE.length + nonce.length);
  return statement;
}
