/**
 * Decides about CertificateSigningRequests of agents.
 *
 * An author of such a request may ask for any name in it, and the signer signs
 * what was approved. Only its author cannot be forged: the API server notes
 * that in `spec.username`. So a request is good when its author is a node
 * itself, or a ServiceAccount with a token that is bound to a node, and when it
 * asks for that node only. (The approver of yurttunnel looks at the request
 * alone, so any author gets a certificate for any node there, and even the
 * server's own, which kubelets accept.)
 *
 * @module
 */

import {
  AGENT_SUBJECT,
  API_CLIENT_SIGNER,
  CLIENT_USAGES,
} from "../../neighbours/kubernetes/csr.ts";
import type { CertificateSigningRequest } from "../../neighbours/kubernetes/objects.ts";
import { NODE_NAME } from "../../neighbours/kubernetes/token_review.ts";
import { PkiError } from "../../platform/pki/key_pair.ts";
import {
  type NamedRequest,
  readNamedRequest,
} from "../../platform/pki/named_request.ts";
import { SIGNING_REQUEST_BYTES_MAX } from "../../platform/pki/signing_request.ts";
import type { Identifiers } from "../../proto/peer/identifiers.ts";

/** Whom node identities are of, besides their name. */
const NODES_GROUP = "system:nodes";

/** Tokens for machines that are not nodes yet. */
const BOOTSTRAP_GROUP = "system:bootstrappers";

const NODE_USER = /^system:node:(.+)$/;

/** The decision about a request. */
export type CsrDecision =
  /** Not ours, or decided already; `why` is a part of a sentence. */
  | { readonly kind: "ignore"; readonly why: string }
  | { readonly kind: "approve"; readonly node: string }
  /** It may be good soon: nodes get addresses, and change them. */
  | { readonly kind: "wait"; readonly why: string }
  | { readonly kind: "deny"; readonly why: string };

/** The facts for a decision. */
export interface CsrPolicyOptions {
  /**
   * The ServiceAccounts whose bound tokens count, as `namespace/name`; absent:
   * none.
   */
  readonly serviceAccount?: string;
  /** Names and addresses of a node of the cluster. */
  readonly addresses: { of(nodeName: string): Promise<Identifiers> };
}

/**
 * Decides about one request.
 *
 * @throws {KubernetesError | NeighbourConfigError} When the node's addresses
 *   are needed and cannot be read.
 */
export async function decideCsr(
  { spec, status }: CertificateSigningRequest,
  options: CsrPolicyOptions,
): Promise<CsrDecision> {
  if (spec.signerName !== API_CLIENT_SIGNER) {
    return ignore(`it is for signer ${spec.signerName}`);
  }
  if ((status?.conditions ?? []).length > 0 || status?.certificate) {
    return ignore("it is decided already");
  }
  const read = await readRequest(spec.request);
  if (typeof read === "string") return ignore(read);
  if (read.commonName !== AGENT_SUBJECT.commonName) {
    return ignore(`it is for ${JSON.stringify(read.commonName)}`);
  }
  const { organizations } = read;
  if (!isSame(organizations, AGENT_SUBJECT.organizations)) {
    return deny(`its subject has O=${JSON.stringify(organizations)}`);
  }
  if (!isSame(spec.usages ?? [], CLIENT_USAGES)) {
    return deny(`its usages are ${(spec.usages ?? []).join(", ")}`);
  }
  const node = nodeOf(spec, options.serviceAccount);
  if (node === undefined) {
    if (spec.groups?.includes(BOOTSTRAP_GROUP)) {
      return ignore(
        "a bootstrap token proves no node; kubectl certificate approve it, " +
          "if it is one",
      );
    }
    return deny(
      `${JSON.stringify(spec.username ?? "")} is no node's own identity`,
    );
  }
  return await decideNames(node, read, options);
}

/** @returns A part of a sentence when it cannot be relied on. */
async function readRequest(text: string): Promise<NamedRequest | string> {
  if (text.length > 2 * SIGNING_REQUEST_BYTES_MAX) return "it is too long";
  try {
    return await readNamedRequest(atob(text));
  } catch (error) {
    if (error instanceof PkiError) return error.message;
    if (error instanceof DOMException) return "it is no base64";
    throw error;
  }
}

/** The node that a request comes from, as far as the API server knows it. */
function nodeOf(
  { username = "", groups = [], extra = {} }: CertificateSigningRequest["spec"],
  serviceAccount: string | undefined,
): string | undefined {
  const [, node] = NODE_USER.exec(username) ?? [];
  if (node !== undefined) {
    return groups.includes(NODES_GROUP) ? node : undefined;
  }
  if (serviceAccount === undefined) return undefined;
  const wanted = `system:serviceaccount:${serviceAccount.replace("/", ":")}`;
  const bound = extra[NODE_NAME] ?? [];
  return username === wanted && bound.length === 1 && bound[0] !== ""
    ? bound[0]
    : undefined;
}

async function decideNames(
  node: string,
  { dnsNames, ipAddresses }: NamedRequest,
  { addresses }: CsrPolicyOptions,
): Promise<CsrDecision> {
  if (dnsNames.length !== 1 || dnsNames[0] !== node) {
    return deny(
      `it comes from node ${JSON.stringify(node)} and asks for names ` +
        JSON.stringify(dnsNames),
    );
  }
  if (ipAddresses.length === 0) return { kind: "approve", node };
  const known = await addresses.of(node);
  const strange = ipAddresses
    .find((ip) => !known.ipv4.includes(ip) && !known.ipv6.includes(ip));
  if (strange === undefined) return { kind: "approve", node };
  const why = `${strange} is no address of node ${JSON.stringify(node)}`;
  return { kind: "wait", why };
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && b.every((item) => a.includes(item));
}

function ignore(why: string): CsrDecision {
  return { kind: "ignore", why };
}

function deny(why: string): CsrDecision {
  return { kind: "deny", why };
}
