/**
 * Addresses of things in the Kubernetes API, and a few of its rules of writing.
 *
 * @module
 */

import type { Lease } from "./objects.ts";

/** Group and version of a collection, and its name in paths. */
export interface ApiCollection {
  /** Such as `coordination.k8s.io/v1`; `v1` alone is the core group. */
  readonly apiVersion: string;
  /** Lower-case plural, such as `leases`. */
  readonly plural: string;
}

export const LEASES: ApiCollection = {
  apiVersion: "coordination.k8s.io/v1",
  plural: "leases",
};
export const TOKEN_REVIEWS: ApiCollection = {
  apiVersion: "authentication.k8s.io/v1",
  plural: "tokenreviews",
};
export const CERTIFICATE_SIGNING_REQUESTS: ApiCollection = {
  apiVersion: "certificates.k8s.io/v1",
  plural: "certificatesigningrequests",
};
export const SERVICES: ApiCollection = { apiVersion: "v1", plural: "services" };
export const NODES: ApiCollection = { apiVersion: "v1", plural: "nodes" };
export const PODS: ApiCollection = { apiVersion: "v1", plural: "pods" };
export const ENDPOINT_SLICES: ApiCollection = {
  apiVersion: "discovery.k8s.io/v1",
  plural: "endpointslices",
};

/** Which part of a collection. */
export interface ApiPath {
  /** Absent: of the whole cluster. */
  readonly namespace?: string;
  /** Absent: the collection itself. */
  readonly name?: string;
  /** Such as `approval` or `status`. */
  readonly subresource?: string;
}

/** Such as `/api/v1/namespaces/kube-system/services/x-tunnel-server-svc`. */
export function objectPathOf(
  resource: ApiCollection,
  where: ApiPath = {},
): string {
  const { apiVersion, plural } = resource;
  const { namespace, name, subresource } = where;
  const parts = [
    ...apiVersion.includes("/") ? ["apis", ...apiVersion.split("/")] : [
      "api",
      apiVersion,
    ],
    ...namespace === undefined ? [] : ["namespaces", namespace],
    plural,
    ...name === undefined ? [] : [name],
    ...subresource === undefined ? [] : [subresource],
  ];
  return `/${parts.map(encodeURIComponent).join("/")}`;
}

/** `MicroTime`: RFC 3339 with six digits behind the second. */
export function formatMicroTime(epochMs: number): string {
  return new Date(epochMs).toISOString().replace("Z", "000Z");
}

// Labels of Kubernetes objects as people write them.

/** An optional prefix (a DNS name) and a name of at most 63 characters. */
const KEY =
  /^(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

const VALUE = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

/**
 * Reads `key=value,key=value`.
 *
 * @returns `undefined` when the text has another form, or is empty.
 */
export function parseLabels(
  text: string,
): Readonly<Record<string, string>> | undefined {
  const labels = new Map<string, string>();
  for (const part of text.split(",")) {
    const [key = "", value, ...rest] = part.trim().split("=");
    const isGood = value !== undefined && rest.length === 0 &&
      KEY.test(key) && VALUE.test(value) && !labels.has(key);
    if (!isGood) return undefined;
    labels.set(key, value);
  }
  return Object.fromEntries(labels);
}

// Server leases, by which Konnectivity's servers say that they are there and
// its agents learn how many there are.

/** How long a lease holds after it was renewed, as upstream. */
export const LEASE_SECONDS = 30;

/** Time between two renewals, and between two looks for expired ones. */
export const RENEW_MS = 15_000;

/** The name of a server's lease; what upstream calls it. */
export function leaseName(serverId: string): string {
  return `konnectivity-proxy-server-${serverId}`;
}

/**
 * When a lease ends, by the clock of the one that renewed it.
 *
 * @returns Milliseconds since 1970; `undefined` when the lease has no times,
 *   and so is not valid.
 */
export function leaseEndMs({ spec }: Lease): number | undefined {
  const from = Date.parse(spec?.renewTime ?? spec?.acquireTime ?? "");
  const seconds = spec?.leaseDurationSeconds;
  if (Number.isNaN(from) || seconds === undefined) return undefined;
  return from + seconds * 1000;
}
