/**
 * Looks at certificates that a server shows: good now, of their key, and for the
 * names by which it is called.
 *
 * @module
 */

import { failed, type Finding, fine, warned } from "../walk/path_walk.ts";
import { spanOf } from "../walk/tls_fault.ts";
import {
  type CredentialFiles,
  Credentials,
  CredentialsError,
} from "../../../net/tls/trust/credentials.ts";
import {
  type CertificateFacts,
  readCertificates,
} from "../../../platform/pki/certificate.ts";
import { alternativeNamesOf } from "../../../platform/pki/certificate_words.ts";
import { parseIpAddress } from "../../../proto/peer/ip_address.ts";

/** A certificate that somebody looks after, and what it must be for. */
export interface ShownCertificate {
  /** Such as `--cluster-cert`. */
  readonly flag: string;
  readonly files: CredentialFiles;
  /** Names or addresses by which it is called; empty: any. */
  readonly names: readonly string[];
  /** The server renews it. */
  readonly isRenewed: boolean;
}

/** What ends within so long, and is renewed by nobody, is a warning. */
const SOON_MS = 14 * 86_400_000;

/** Looks at one. */
export function lookAtCertificate(
  { flag, files, names, isRenewed }: ShownCertificate,
  nowMs: number,
): Finding {
  let leaf: CertificateFacts;
  try {
    const { current } = Credentials.load(files);
    leaf = readCertificates(current.cert)[0]!;
  } catch (error) {
    if (!(error instanceof CredentialsError)) throw error;
    return unusable(flag, error.message);
  }
  const until = new Date(leaf.notAfterMs).toISOString();
  const what = `${flag} (${files.cert})`;
  if (leaf.notBeforeMs > nowMs) {
    return failed(
      isRenewed ? "TUN916" : "TUN201",
      `${what} is valid from ${new Date(leaf.notBeforeMs).toISOString()} on; ` +
        `this machine's clock says ${new Date(nowMs).toISOString()}`,
      "set the clock (timedatectl set-ntp true), or issue it anew",
    );
  }
  if (leaf.notAfterMs < nowMs) {
    const late = spanOf(nowMs - leaf.notAfterMs);
    return failed(
      "TUN202",
      `${what} expired ${late} ago, on ${until}`,
      isRenewed
        ? "start the server: it issues itself another one; if it runs, see " +
          "its log"
        : "issue another one into the same files: it is read again while the " +
          "server runs",
    );
  }
  const missing = names.filter((name) => !isFor(leaf, name));
  if (missing.length > 0) {
    return failed(
      "TUN207",
      `${what} is for ${
        alternativeNamesOf(new Uint8Array(leaf.x509.raw))
      }, and not for ${missing.join(", ")}`,
      isRenewed
        ? `add --server-names ${missing.join(",")}`
        : "issue it for that name, too, or correct --advertise-address",
    );
  }
  if (!isRenewed && leaf.notAfterMs < nowMs + SOON_MS) {
    return warned(
      "TUN202",
      `${what} expires in ${spanOf(leaf.notAfterMs - nowMs)}, on ${until}, ` +
        "and nobody renews it here",
      "issue another one into the same files",
    );
  }
  return fine(`${what} is good until ${until}`);
}

function isFor({ x509 }: CertificateFacts, name: string): boolean {
  return parseIpAddress(name) === undefined
    ? x509.checkHost(name) !== undefined
    : x509.checkIP(name) !== undefined;
}

function unusable(flag: string, message: string): Finding {
  return /does not belong/.test(message)
    ? failed("TUN203", message, `give the key of the certificate of ${flag}`)
    : failed("TUN203", message, `correct ${flag} and what goes with it`);
}
