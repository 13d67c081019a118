/**
 * Certificates that our authority issues to nodes and to this server. All that a
 * node's certificate says is the server's word: a signing request contributes its
 * key.
 *
 * @module
 */

import { isForCalling, type LeafName } from "../../platform/pki/authority.ts";
import {
  type CertificateFacts,
  certificateFacts,
  isSignedBy,
  readCertificates,
  RENEWAL_FRACTION,
} from "../../platform/pki/certificate.ts";
import {
  isDnsName,
  NODE_SUBJECT_PREFIX,
  TUNNEL_SERVER_NAME,
} from "../../proto/identity/node_name.ts";
import type { Authorities } from "./authorities.ts";
import type { NodeRecord } from "./node_store.ts";
import { authorityIdOf } from "../../proto/identity/enrolment.ts";
import { keepFile, replaceFile } from "../../platform/files/atomic_file.ts";
import {
  exportPrivateKey,
  generateKeyPair,
  importKeyPair,
  PkiError,
  publicKeyInfo,
  sha256Hex,
} from "../../platform/pki/key_pair.ts";
import { parseIpAddress } from "../../proto/peer/ip_address.ts";
import type { DirectoryStore } from "../../neighbours/store/directory_store.ts";

/** The organization of all nodes. */
export const NODE_ORGANIZATION = "tunnel:agents";

/** A certificate, and what its node's record says about it. */
export interface NodeCertificate {
  /** PEM. */
  readonly pem: string;
  readonly record: NonNullable<NodeRecord["certificate"]>;
}

/** Issues one, of the authority that issues now. */
export async function issueNodeCertificate(
  { current }: Authorities,
  node: string,
  publicKey: CryptoKey,
  nowMs: number,
  lifeMs: number,
): Promise<NodeCertificate> {
  const pem = await current.issue({
    publicKey,
    commonName: NODE_SUBJECT_PREFIX + node,
    organizations: [NODE_ORGANIZATION],
    names: namesOf(node),
    usage: "client",
    notAfter: new Date(nowMs + lifeMs),
  });
  const { x509, notAfterMs } = certificateFacts(pem);
  return {
    pem,
    record: {
      serialNumber: x509.serialNumber,
      authority: authorityIdOf(current.facts),
      issuedAt: new Date(nowMs).toISOString(),
      expiresAt: new Date(notAfterMs).toISOString(),
    },
  };
}

function namesOf(node: string): LeafName[] {
  const uri: LeafName = { type: "url", value: `tunnel://node/${node}` };
  return isDnsName(node) ? [uri, { type: "dns", value: node }] : [uri];
}

// The server's own certificate: issued by its own authority, and renewed long
// before it expires, or when its names are wrong.

const DAY_MS = 24 * 3600_000;
/** How long a server's certificate is good. */
export const SERVER_LEAF_LIFE_MS = 90 * DAY_MS;

const DUE = "most of its life was over";

/** Its file: key, leaf and chain together, so that they change together. */
export const SERVER_FILE = "server.pem";

/**
 * Renews the server's certificate if needed.
 *
 * @param names Further names, DNS or IP, for clients that are not our agents.
 * @param warn Called when a new one cannot be saved and the old one is still
 *   valid.
 * @returns Why it was renewed; `undefined` when the old one is fine.
 * @throws {StoreError} When its file may be read by others.
 */
export async function ensureServerLeaf(
  state: DirectoryStore,
  authorities: Authorities,
  names: readonly string[],
  nowMs: number,
  warn: (line: string) => void = () => {},
): Promise<string | undefined> {
  const wanted = [...new Set([TUNNEL_SERVER_NAME, ...names])].map(leafName);
  const why = await whyAnew(state, authorities, wanted, nowMs);
  if (why === undefined) return undefined;
  const { publicKey, privateKey } = await generateKeyPair();
  const leaf = await authorities.current.issue({
    publicKey,
    commonName: TUNNEL_SERVER_NAME,
    names: wanted,
    // It shows it to other servers, too, when it forwards dials to them.
    usage: "both",
    notAfter: new Date(nowMs + SERVER_LEAF_LIFE_MS),
  });
  const path = state.path(SERVER_FILE);
  const pem = await exportPrivateKey(privateKey) + leaf + authorities.chain;
  // The old one is good for weeks, and this is tried again.
  if (why === DUE) return await keepFile(path, pem, warn) ? why : undefined;
  await replaceFile(path, pem);
  return why;
}

async function whyAnew(
  state: DirectoryStore,
  authorities: Authorities,
  names: readonly LeafName[],
  nowMs: number,
): Promise<string | undefined> {
  let leaf: CertificateFacts;
  let chain: string;
  try {
    const pem = await state.readSecret(SERVER_FILE);
    const [first, ...others] = readCertificates(pem);
    leaf = first!;
    chain = others.map((facts) => facts.pem).join("");
    const { publicKey } = await importKeyPair(pem);
    const hash = sha256Hex(await publicKeyInfo(publicKey));
    if (hash !== leaf.publicKeySha256) return "its key was another one";
  } catch (error) {
    // Nothing is lost with a leaf; but a file open to others is not ours to fix.
    if (error instanceof PkiError) return "its file was damaged";
    if (await isMissingOrEmpty(state.path(SERVER_FILE))) {
      return "there was none";
    }
    throw error;
  }
  if (!isSignedBy(leaf.x509, authorities.current.facts.x509)) {
    return "another authority issues now";
  }
  if (chain !== authorities.chain) return "the authorities have changed";
  if (leaf.x509.subjectAltName !== subjectAltName(names)) {
    return "its names have changed";
  }
  if (!isForCalling(leaf.pem)) return "servers could not call others with it";
  if (nowMs > leaf.notAfterMs) return "it had expired";
  const life = leaf.notAfterMs - leaf.notBeforeMs;
  const isDue = nowMs > leaf.notBeforeMs + life * RENEWAL_FRACTION;
  return isDue ? DUE : undefined;
}

async function isMissingOrEmpty(path: string): Promise<boolean> {
  try {
    return (await Deno.stat(path)).size === 0;
  } catch (error) {
    return error instanceof Deno.errors.NotFound;
  }
}

function leafName(value: string): LeafName {
  return { type: parseIpAddress(value) === undefined ? "dns" : "ip", value };
}

/** The platform's text form of the extension. */
function subjectAltName(names: readonly LeafName[]): string {
  return names
    .map(({ type, value }) =>
      type === "ip" ? `IP Address:${value}` : `DNS:${value}`
    )
    .join(", ");
}
