/**
 * What an agent that has its certificate from the cluster wants to know, already
 * validated.
 *
 * @module
 */

import type { KubernetesOptions } from "../../../neighbours/kubernetes/connect.ts";
import type { CertificateSpec } from "../../../neighbours/kubernetes/csr.ts";
import type { DiscoveryOptions } from "./service_discovery.ts";

export interface KubernetesIdentityOptions {
  readonly api: KubernetesOptions;
  /** Asked in its place until there is a first certificate. */
  readonly bootstrap?: KubernetesOptions;
  readonly certificate: {
    readonly spec: CertificateSpec;
    readonly directory: string;
    /** Begins the names of its files. */
    readonly component: string;
  };
  /** CA of the servers' certificates; absent: the API server's. */
  readonly caFile?: string;
  /** What the servers' certificates must be for; absent: the address dialed. */
  readonly serverName?: string;
  /** Absent: servers are where `AgentOptions` says. */
  readonly discovery?: DiscoveryOptions;
}
