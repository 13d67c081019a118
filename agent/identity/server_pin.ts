/**
 * Finds the authority that a join token pins, among what a server shows.
 *
 * Nobody is trusted for this: the certificates are only looked at, and nothing
 * but a TLS handshake is sent. A server that shows the pinned authority without
 * having its key fails at the next connection, which is verified with it.
 *
 * @module
 */

import { shownCertificates } from "../../net/dial/server_connect.ts";
import {
  type CertificateFacts,
  certificateFacts,
  pinOf,
} from "../../platform/pki/certificate.ts";
import { PkiError } from "../../platform/pki/key_pair.ts";
import { holderOf } from "../../platform/pki/certificate_words.ts";
import { PinError } from "./enrolment_error.ts";

/**
 * The authority of the token.
 *
 * @param pin See `proto/identity/join_token.ts`.
 * @returns PEM.
 * @throws {PinError} When the server does not show it.
 * @throws {ConnectError | TlsHandshakeError}
 */
export async function pinnedAuthority(
  options: Parameters<typeof shownCertificates>[0],
  pin: string,
): Promise<string> {
  const shown = await shownCertificates(options);
  const pinned = shown.map(readableFacts)
    .find((facts) => facts !== undefined && pinOf(facts) === pin);
  if (pinned !== undefined) return pinned.pem;
  const [leaf] = shown;
  const holder = leaf === undefined ? "nobody" : holderOf(new Uint8Array(leaf));
  throw new PinError(
    `Cannot join at ${options.host}:${options.port}: the server there ` +
      `(${holder}) is not the one that made this token, so it was told ` +
      "nothing; correct --server, or make a token on that server with " +
      "`tunnel token create`",
  );
}

/** @returns `undefined`: another's may be damaged, and ours is not. */
function readableFacts(der: Uint8Array): CertificateFacts | undefined {
  try {
    return certificateFacts(der);
  } catch (error) {
    if (!(error instanceof PkiError)) throw error;
    return undefined;
  }
}
