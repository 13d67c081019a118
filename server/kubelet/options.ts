/**
 * What the kubelet front end wants to know, already validated.
 *
 * @module
 */

import type { KubernetesOptions } from "../../neighbours/kubernetes/connect.ts";
import type { ListenAddress } from "../../net/listen/listeners.ts";
import type {
  CredentialFiles,
  KeyPairFiles,
} from "../../net/tls/trust/credentials.ts";

/** See the module description. */
export interface KubeletOptions {
  readonly address: ListenAddress;
  /** Shown to callers; absent: what agents are shown. */
  readonly keyPair?: KeyPairFiles;
  /** Callers must show a certificate of this CA. */
  readonly callerCaFile: string;
  /** Shown to kubelets; absent: nothing, which most of them refuse. */
  readonly clientKeyPair?: KeyPairFiles;
  /** Kubelets must show a certificate of this CA; absent: any will do. */
  readonly kubeletCaFile?: string;
  /** Ports that agents dial on the node's loopback instead. */
  readonly localhostPorts: readonly number[];
  /** Where to look up pods and nodes; absent: nowhere. */
  readonly lookups?: KubernetesOptions;
}

/**
 * What callers are shown, and which of them are believed.
 *
 * @param agents What agents are shown.
 */
export function callerFiles(
  { keyPair, callerCaFile }: KubeletOptions,
  agents: CredentialFiles,
): CredentialFiles {
  const { certFile: cert, keyFile: key } = keyPair ??
    { certFile: agents.cert, keyFile: agents.key };
  return { cert, key, ca: callerCaFile };
}

/** What kubelets are shown, and which of them are believed. */
export function kubeletFiles(
  { clientKeyPair, kubeletCaFile }: KubeletOptions,
): CredentialFiles {
  return {
    cert: clientKeyPair?.certFile,
    key: clientKeyPair?.keyFile,
    ca: kubeletCaFile,
  };
}
