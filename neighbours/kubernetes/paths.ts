/**
 * Addresses of things in the Kubernetes API, and a few of its rules of writing.
 *
 * @module
 */

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
