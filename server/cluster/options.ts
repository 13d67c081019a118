/**
 * What a server is to do with an API server, already validated.
 *
 * @module
 */

import type { KubernetesOptions } from "../../neighbours/kubernetes/connect.ts";
import type { TokenRequirement } from "./token_judge.ts";

/** See the module description. */
export interface KubernetesServerOptions extends KubernetesOptions {
  /** Agents may show a token of this ServiceAccount instead of a certificate. */
  readonly agentTokens?: TokenRequirement;
  /** The server's lease; absent: none is published. */
  readonly lease?: {
    readonly namespace: string;
    readonly labels: Readonly<Record<string, string>>;
  };
  /** Agents' requests for certificates are decided; absent: they are not. */
  readonly csrApprover?: {
    /** Whose bound tokens count beside nodes' own identities. */
    readonly serviceAccount?: string;
  };
}
