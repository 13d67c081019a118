/**
 * Certificate signing requests (PKCS #10, RFC 2986) with names only: for
 * authorities that sign an approved request as it is, such as Kubernetes'.
 *
 * The approver reads here what the authority will read with another parser. So
 * a request is refused unless there is only one way to read it: one subject, at
 * most one attribute, at most one extension, names of two kinds.
 *
 * @module
 */

import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import { canonicalIp } from "../../proto/peer/ip_address.ts";
import { P256, PkiError } from "./key_pair.ts";
import { readSigningRequest, type SigningRequest } from "./signing_request.ts";

/** The names of a certificate. */
export interface RequestedNames {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly dnsNames: readonly string[];
  /** Canonical. */
  readonly ipAddresses: readonly string[];
}

/** A request whose names can be relied on to be all there is. */
export interface NamedRequest extends SigningRequest, RequestedNames {}

const SUBJECT_ALTERNATIVE_NAME = "2.5.29.17";

/** Makes a request. @returns PEM. */
export async function makeNamedRequest(
  keys: CryptoKeyPair,
  names: RequestedNames,
): Promise<string> {
  const alternatives = [
    ...names.dnsNames.map((value) => ({ type: "dns" as const, value })),
    ...names.ipAddresses.map((value) => ({ type: "ip" as const, value })),
  ];
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    keys,
    signingAlgorithm: P256,
    name: [
      ...names.organizations.map((name) => ({ O: [name] })),
      { CN: [names.commonName] },
    ],
    ...(alternatives.length === 0 ? {} : {
      extensions: [new x509.SubjectAlternativeNameExtension(alternatives)],
    }),
  });
  return request.toString("pem").trimEnd() + "\n";
}

/**
 * Reads a request and checks its signature.
 *
 * @param pem Untrusted; exactly one block.
 * @throws {PkiError} When it cannot be read, its key is not P-256, or it
 *   requests anything but names.
 */
export async function readNamedRequest(pem: string): Promise<NamedRequest> {
  const der = derOf(pem);
  const proven = await readSigningRequest(der);
  let request: x509.Pkcs10CertificateRequest;
  let names: x509.JsonGeneralName[];
  try {
    request = new x509.Pkcs10CertificateRequest(der);
    names = alternativeNames(request);
  } catch (cause) {
    if (cause instanceof PkiError) throw cause;
    // Readers of ASN.1 throw errors of many classes.
    throw new PkiError("Cannot read the signing request: it is damaged", {
      cause,
    });
  }
  return { ...proven, ...subjectOf(request), ...sorted(names) };
}

function derOf(pem: string): Uint8Array<ArrayBuffer> {
  const match =
    /^\s*-----BEGIN CERTIFICATE REQUEST-----([^-]*)-----END CERTIFICATE REQUEST-----\s*$/
      .exec(pem);
  try {
    if (match === null) throw new TypeError("no block");
    return Uint8Array.fromBase64(match[1]!);
  } catch (cause) {
    throw new PkiError(
      `Cannot read the signing request: wanted one whole PEM block "BEGIN ` +
        `CERTIFICATE REQUEST" and nothing around it`,
      { cause },
    );
  }
}

function subjectOf(
  { subjectName }: x509.Pkcs10CertificateRequest,
): Pick<RequestedNames, "commonName" | "organizations"> {
  const commonNames: string[] = [];
  const organizations: string[] = [];
  for (const part of subjectName.toJSON()) {
    for (const [type, values] of Object.entries(part)) {
      if (type === "CN") commonNames.push(...values);
      else if (type === "O") organizations.push(...values);
      else throw unexpected(`its subject has ${type}`);
    }
  }
  const [commonName] = commonNames;
  if (commonName === undefined || commonNames.length > 1) {
    throw unexpected(`its subject has ${commonNames.length} common names`);
  }
  return { commonName, organizations };
}

function alternativeNames(
  { attributes }: x509.Pkcs10CertificateRequest,
): x509.JsonGeneralName[] {
  const [attribute] = attributes;
  if (attribute === undefined) return [];
  const isOne = attributes.length === 1 && attribute.values.length === 1 &&
    attribute instanceof x509.ExtensionsAttribute &&
    attribute.items.length === 1;
  const extension = isOne ? attribute.items[0] : undefined;
  if (
    !(extension instanceof x509.SubjectAlternativeNameExtension) ||
    extension.type !== SUBJECT_ALTERNATIVE_NAME
  ) throw unexpected("it asks for other things than names");
  return extension.names.toJSON();
}

function sorted(
  names: readonly x509.JsonGeneralName[],
): Pick<RequestedNames, "dnsNames" | "ipAddresses"> {
  const dnsNames: string[] = [];
  const ipAddresses: string[] = [];
  for (const { type, value } of names) {
    if (type === "dns") dnsNames.push(value);
    else if (type === "ip") ipAddresses.push(canonicalIp(value));
    else throw unexpected(`it asks for a name of kind ${type}`);
  }
  return { dnsNames, ipAddresses };
}

function unexpected(what: string): PkiError {
  return new PkiError(
    `Cannot accept the signing request: ${what}, wanted a subject of O and ` +
      "one CN, and alternative names that are DNS names or addresses",
  );
}
