/**
 * How an agent learns from leases how many servers there are, already
 * validated.
 *
 * @module
 */

import type { KubernetesOptions } from "../../neighbours/kubernetes/connect.ts";

/** See the module description. */
export interface LeaseCountOptions extends KubernetesOptions {
  readonly namespace: string;
  readonly labelSelector: string;
  /** `max`: or what servers say, if that is more. */
  readonly source: "leases" | "max";
}
