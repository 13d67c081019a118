/**
 * Which files say who is who on the port for kubelets' callers.
 *
 * @module
 */

import type { CredentialFiles } from "../../net/tls/trust/credentials.ts";
import type { KubeletOptions } from "../options.ts";

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
