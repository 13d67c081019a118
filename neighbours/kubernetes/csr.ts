/**
 * Gets a certificate from a cluster: writes a CertificateSigningRequest, waits
 * until it is approved and the signer has signed it.
 *
 * The request's name is computed from its key and its content. So a second
 * request with the same key (after a failure or a restart) finds the first one
 * instead of adding another.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { within } from "../../platform/time/deadline.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import {
  type CertificateFacts,
  readCertificates,
} from "../../platform/pki/certificate.ts";
import {
  PkiError,
  publicKeyInfo,
  sha256Hex,
} from "../../platform/pki/key_pair.ts";
import {
  makeNamedRequest,
  type RequestedNames,
} from "../../platform/pki/named_request.ts";
import type { KubernetesClient } from "./client.ts";
import { KubernetesError } from "./errors.ts";
import { ListWatch } from "./list_watch.ts";
import type { CertificateSigningRequest } from "./objects.ts";
import { CERTIFICATE_SIGNING_REQUESTS, objectPathOf } from "./paths.ts";

/** Signs client certificates that the API server itself believes. */
export const API_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client";

/**
 * What a client certificate is for. Approvers compare the whole set, so
 * encipherment is in it although keys of P-256 cannot do that.
 */
export const CLIENT_USAGES: readonly string[] = [
  "key encipherment",
  "digital signature",
  "client auth",
];

/** Subject of every agent's certificate; yurttunnel's servers look for it. */
export const AGENT_SUBJECT = {
  commonName: "tunnel-agent-client",
  organizations: ["openyurt:yurttunnel"],
} as const;

/** How long a request may wait for its certificate; as client-go. */
export const ISSUE_TIMEOUT_MS = 15 * 60_000;

/** What is asked for. */
export interface CertificateSpec extends RequestedNames {
  readonly signerName: string;
  readonly usages: readonly string[];
  /** At least 600; signers may shorten it, and old ones ignore it. */
  readonly expirationSeconds: number;
}

/** No certificate was issued; the message says why, and the remedy. */
export class CsrError extends Error {
  override readonly name = "CsrError";
  readonly tunnelCode: Code = "TUN802";

  /** @param needsNewKey Nothing will ever come of asking with this one. */
  constructor(message: string, readonly needsNewKey = false) {
    super(message);
  }
}

/** Options of {@linkcode requestCertificate}. */
export interface CsrSurroundings {
  readonly client: Pick<KubernetesClient, "get" | "create" | "stream">;
  readonly timers: Timers;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly signal: AbortSignal;
  /** Default: {@linkcode ISSUE_TIMEOUT_MS}. */
  readonly timeoutMs?: number;
  /** It is written, or was found; a decision is awaited. */
  readonly onPending?: (name: string) => void;
}

/**
 * Asks and waits.
 *
 * @returns The chain, leaf first.
 * @throws {CsrError} When it was refused, or not decided in time.
 * @throws {KubernetesError | NeighbourConfigError} When it could not be asked.
 */
export async function requestCertificate(
  keys: CryptoKeyPair,
  spec: CertificateSpec,
  surroundings: CsrSurroundings,
): Promise<readonly CertificateFacts[]> {
  const key = sha256Hex(await publicKeyInfo(keys.publicKey));
  const written = await write(keys, spec, nameOf(key, spec), surroundings);
  surroundings.onPending?.(written.metadata.name!);
  const decided = outcomeOf(written) === undefined
    ? await untilDecided(written, surroundings)
    : written;
  const chain = chainOf(decided);
  if (chain[0]!.publicKeySha256 !== key) {
    throw new CsrError(
      `Cannot use the certificate of ${describe(decided)}: it is for another ` +
        "key than ours; look at who signs for this cluster",
      true,
    );
  }
  return chain;
}

function nameOf(publicKeySha256: string, spec: CertificateSpec): string {
  const content = JSON.stringify([publicKeySha256, spec]);
  const hash = sha256Hex(new TextEncoder().encode(content));
  return `tunnel-${hash.slice(0, 40)}`;
}

async function write(
  keys: CryptoKeyPair,
  spec: CertificateSpec,
  name: string,
  { client, signal }: CsrSurroundings,
): Promise<CertificateSigningRequest> {
  const { signerName, usages, expirationSeconds } = spec;
  const request = btoa(await makeNamedRequest(keys, spec));
  try {
    return await client.create<CertificateSigningRequest>(
      objectPathOf(CERTIFICATE_SIGNING_REQUESTS),
      {
        apiVersion: CERTIFICATE_SIGNING_REQUESTS.apiVersion,
        kind: "CertificateSigningRequest",
        metadata: { name },
        spec: { request, signerName, usages, expirationSeconds },
      },
      // The caller retries by itself, and reports each failure.
      { signal, isRepeatable: false },
    );
  } catch (error) {
    const isThere = error instanceof KubernetesError && error.code === 409;
    if (!isThere) throw error;
    return await client.get<CertificateSigningRequest>(
      objectPathOf(CERTIFICATE_SIGNING_REQUESTS, { name }),
      { signal, isRepeatable: false },
    );
  }
}

// --- Waiting ---------------------------------------------------------------------

async function untilDecided(
  written: CertificateSigningRequest,
  { client, timers, random, signal, timeoutMs }: CsrSurroundings,
): Promise<CertificateSigningRequest> {
  const { name, uid } = written.metadata;
  const limitMs = timeoutMs ?? ISSUE_TIMEOUT_MS;
  const deciding = Promise.withResolvers<CertificateSigningRequest>();
  let last = written;
  const late = () =>
    new CsrError(
      `No certificate for ${describe(last)} in ${
        Math.round(limitMs / 1000)
      } s: ${waitingFor(last)}`,
    );
  const isGone = () =>
    deciding.reject(
      new CsrError(`${describe(last)} was deleted; asking again`),
    );
  const following = new ListWatch<CertificateSigningRequest>({
    client,
    path: objectPathOf(CERTIFICATE_SIGNING_REQUESTS),
    query: { fieldSelector: `metadata.name=${name}` },
    timers,
    random,
    onChanges: (changes) => {
      for (const { type, object } of changes) {
        if (object.metadata.name !== name) continue;
        if (type === "removed" || object.metadata.uid !== uid) return isGone();
        last = object;
        if (outcomeOf(object) !== undefined) deciding.resolve(object);
      }
    },
    onSynced: () => void (following.objects.has(name!) || isGone()),
    onProblem: (error) => {
      // Asking again gives no right; all other failures may pass.
      const isRight = error instanceof KubernetesError && error.code === 403;
      if (isRight) deciding.reject(error);
    },
  });
  if (!signal.aborted) following.start();
  try {
    return await within(
      { timers, timeoutMs: limitMs, late, signal },
      deciding.promise,
    );
  } finally {
    await following.stop();
  }
}

// --- What became of it -------------------------------------------------------------

/** @returns `undefined` while an approval or signature is missing. */
function outcomeOf(
  { status }: CertificateSigningRequest,
): "Denied" | "Failed" | "Issued" | undefined {
  const has = (type: string) =>
    status?.conditions?.some((condition) => condition.type === type);
  if (has("Denied")) return "Denied";
  if (has("Failed")) return "Failed";
  return has("Approved") && status?.certificate ? "Issued" : undefined;
}

function waitingFor({ status, metadata }: CertificateSigningRequest): string {
  const isApproved = status?.conditions
    ?.some(({ type }) => type === "Approved");
  return isApproved
    ? "it is approved but not signed; look at kube-controller-manager's " +
      "--cluster-signing-cert-file and its log"
    : "it is pending approval; run a server with --csr-approver, or kubectl " +
      `certificate approve ${metadata.name}`;
}

function chainOf(
  request: CertificateSigningRequest,
): readonly CertificateFacts[] {
  const { status } = request;
  const outcome = outcomeOf(request);
  if (outcome !== "Issued") {
    const found = status?.conditions?.find(({ type }) => type === outcome);
    const said = [found?.reason, found?.message].filter(Boolean).join(": ");
    throw new CsrError(
      `${describe(request)} was ${
        outcome === "Denied" ? "denied" : "approved, but signing it failed"
      } (${said || "no reason was given"}); see to that, then kubectl delete ` +
        `csr ${request.metadata.name} to have it asked again`,
    );
  }
  try {
    return readCertificates(atob(status!.certificate!));
  } catch (cause) {
    if (!(cause instanceof PkiError || cause instanceof DOMException)) {
      throw cause;
    }
    throw new CsrError(
      `Cannot use the certificate of ${describe(request)}: ${cause.message}`,
      true,
    );
  }
}

function describe({ metadata, spec }: CertificateSigningRequest): string {
  return `CertificateSigningRequest ${metadata.name} (${spec.signerName})`;
}
