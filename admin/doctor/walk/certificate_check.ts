/**
 * Looks at certificates that a program shows: of their key, good now, issued by a
 * CA that is, and for the names by which it is called. And at the dates of any
 * certificate, against this machine's clock.
 *
 * @module
 */

import { failed, type Finding, fine, warned } from "./path_walk.ts";
import { spanOf } from "./tls_fault.ts";
import { whenText } from "../../view/cells.ts";
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

/** A certificate that an operator must replace, and its purpose. */
export interface ShownCertificate {
  /** Such as `--cluster-cert`. */
  readonly flag: string;
  readonly files: CredentialFiles;
  /** Names or addresses by which it is called; empty: any. */
  readonly names: readonly string[];
  /** The server renews it. */
  readonly isRenewed: boolean;
}

/**
 * A certificate that expires this soon without automatic renewal is a warning.
 */
const SOON_MS = 14 * 86_400_000;

const SET_CLOCK =
  "set the clock if it is wrong (timedatectl set-ntp true, or " +
  "chronyc makestep); else issue the certificate again";

/** When a certificate is good. */
interface Term {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/**
 * The fault of its dates by this machine's clock, if there is one.
 *
 * @param late The sentence for an expired certificate, and whether that is a
 *   failure.
 */
export function termFault(
  what: string,
  { notBeforeMs, notAfterMs }: Term,
  nowMs: number,
  late: typeof failed,
  remedy: string,
): Finding | undefined {
  const clock = `this machine's clock says ${whenText(nowMs)}`;
  if (notBeforeMs > nowMs) {
    return failed(
      "TUN916",
      `${what} is valid from ${whenText(notBeforeMs)} on; ${clock}, which is ` +
        `at least ${spanOf(notBeforeMs - nowMs)} behind`,
      SET_CLOCK,
    );
  }
  if (notAfterMs >= nowMs) return undefined;
  const ago = spanOf(nowMs - notAfterMs);
  const message = `${what} expired ${ago} ago, on ${
    whenText(notAfterMs)
  }; ${clock}`;
  return late("TUN202", message, remedy);
}

/** Checks one; without a certificate only its trusted authorities. */
export function lookAtCertificate(
  { flag, files, names, isRenewed }: ShownCertificate,
  nowMs: number,
): Finding {
  let credentials: Credentials;
  try {
    credentials = Credentials.load(files);
  } catch (error) {
    if (!(error instanceof CredentialsError)) throw error;
    return unusable(flag, error.message);
  }
  const { terms, current } = credentials;
  const leaf = terms.find(({ role }) => role === "leaf");
  if (leaf === undefined) {
    return fine(`trusts ${files.ca}, and shows no certificate`);
  }
  const what = `${flag} (${files.cert})`;
  const again = "issue another one into the same files: it is read again " +
    "while the program runs";
  const fault = termFault(
    what,
    leaf,
    nowMs,
    failed,
    isRenewed
      ? "start the server: it issues itself another one; if it runs, see its log"
      : again,
  ) ?? nameFault(what, readCertificates(current.cert)[0]!, names, isRenewed);
  if (fault !== undefined) return fault;
  const authority = terms.find(({ role, notAfterMs }) =>
    role === "authority" && notAfterMs < nowMs
  );
  if (authority !== undefined) {
    return warned(
      "TUN202",
      `the CA ${authority.subject} in ${files.ca} expired on ` +
        whenText(authority.notAfterMs),
      "give the CA that is in use",
    );
  }
  const until = whenText(leaf.notAfterMs);
  if (!isRenewed && leaf.notAfterMs < nowMs + SOON_MS) {
    return warned(
      "TUN202",
      `${what} expires in ${spanOf(leaf.notAfterMs - nowMs)}, on ${until}, ` +
        "and no program renews it here",
      again,
    );
  }
  return fine(`${what} of ${leaf.subject} is good until ${until}`);
}

function nameFault(
  what: string,
  leaf: CertificateFacts,
  names: readonly string[],
  isRenewed: boolean,
): Finding | undefined {
  const missing = names.filter((name) => !isFor(leaf, name));
  if (missing.length === 0) return undefined;
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

function isFor({ x509 }: CertificateFacts, name: string): boolean {
  return parseIpAddress(name) === undefined
    ? x509.checkHost(name) !== undefined
    : x509.checkIP(name) !== undefined;
}

function unusable(flag: string, message: string): Finding {
  const key = flag.startsWith("--")
    ? ` with ${flag.replace(/cert$/, "key")}`
    : "";
  return failed(
    "TUN203",
    message,
    /does not belong/.test(message)
      ? `give the key of the certificate of ${flag}${key}`
      : `correct ${flag} and what goes with it`,
  );
}
