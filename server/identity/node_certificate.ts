/**
 * What a node's certificate says. All of it is the server's word: a signing
 * request contributes its key.
 *
 * @module
 */

import type { LeafName } from "../../platform/pki/authority.ts";
import { certificateFacts } from "../../platform/pki/certificate.ts";
import {
  isDnsName,
  NODE_SUBJECT_PREFIX,
} from "../../proto/identity/node_name.ts";
import type { Authorities } from "./authorities.ts";
import type { NodeRecord } from "./node_store.ts";
import { authorityIdOf } from "../../proto/identity/enrolment.ts";

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
