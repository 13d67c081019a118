/**
 * What a node signs to renew without a valid certificate.
 *
 * Bound to a nonce, so that it cannot be repeated later or from elsewhere, and
 * to the request, so that it is good for nothing else.
 *
 * @module
 */

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
