/**
 * What a certificate states about itself, for sentences: never for decisions.
 *
 * Unverified certificates come here as well. The platform's getters throw at
 * subjects they cannot decode, and give nothing for an empty one (RFC 5280
 * §4.1.2.6 allows it; SPIFFE's are so). No function here throws, and no text is
 * longer than a line.
 *
 * @module
 */

import { X509Certificate } from "node:crypto";
import { showUnseen } from "../../proto/peer/quoted.ts";

/** A subject may have 60 KB. */
export const WORDS_LENGTH_MAX = 200;

/** The holder of a certificate (DER), its issuer, and its end. */
export function holderOf(der: Uint8Array<ArrayBuffer>): string {
  const certificate = readable(der);
  if (certificate === undefined) return UNREADABLE;
  return `${certificateSubject(certificate)}; issued by ${
    issuerOf(certificate)
  }; ` +
    validityOf(certificate);
}

/** When a certificate (DER) is valid, and the time here: to compare clocks. */
export function clocksOf(
  der: Uint8Array<ArrayBuffer> | undefined,
  nowMs: number,
): string {
  const certificate = der && readable(der);
  // To the minute: a log leaves out a line that is the same again.
  const ours = `our clock says ${new Date(nowMs).toISOString().slice(0, 16)}Z`;
  return certificate === undefined
    ? ours
    : `it is ${validityOf(certificate)}, and ${ours}`;
}

/** In the log's format; the platform has its own. */
export function isoDate(date: string): string {
  const ms = Date.parse(date);
  return Number.isNaN(ms) ? date : new Date(ms).toISOString();
}

function validityOf(certificate: X509Certificate): string {
  const [from, until] = [
    wordsOf(() => isoDate(certificate.validFrom), "an unreadable date"),
    wordsOf(() => isoDate(certificate.validTo), "an unreadable date"),
  ];
  return `valid from ${from} until ${until}`;
}

/** Its subject in one line. */
export function certificateSubject(certificate: X509Certificate): string {
  return wordsOf(() => certificate.subject, "no subject");
}

/** Its subject alternative names in one line. */
export function alternativeNamesOf(der: Uint8Array<ArrayBuffer>): string {
  const certificate = readable(der);
  if (certificate === undefined) return UNREADABLE;
  return wordsOf(() => certificate.subjectAltName, "no name");
}

function issuerOf(certificate: X509Certificate): string {
  return wordsOf(() => certificate.issuer, "no issuer");
}

function readable(
  der: Uint8Array<ArrayBuffer>,
): X509Certificate | undefined {
  try {
    return new X509Certificate(der);
  } catch {
    return undefined;
  }
}

const UNREADABLE = "a certificate that cannot be read";

function wordsOf(read: () => string | undefined, none: string): string {
  let text: string | undefined;
  try {
    text = read();
  } catch {
    return "a name that cannot be read";
  }
  if (text === undefined || text === "") return none;
  const cut = text.slice(0, WORDS_LENGTH_MAX).replaceAll("\n", ", ");
  const line = showUnseen(cut, () => "\u{fffd}");
  return text.length > WORDS_LENGTH_MAX ? `${line}…` : line;
}
