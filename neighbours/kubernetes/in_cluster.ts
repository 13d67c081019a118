/**
 * Access to the API server from inside a Pod, as its ServiceAccount.
 *
 * @module
 */

import { messageOf } from "../../platform/errors/error_code.ts";
import { bracketed } from "../../proto/peer/host_port.ts";
import type { Clock } from "../../proto/sync/clock.ts";
import type { Credential, KubernetesAccess } from "./access.ts";
import { KubernetesConfigError } from "./errors.ts";
import { TlsFiles } from "./tls_files.ts";
import { TokenFile } from "./token_file.ts";

/** Where a kubelet mounts what a Pod needs to talk to the API server. */
export const SERVICE_ACCOUNT_FOLDER =
  "/var/run/secrets/kubernetes.io/serviceaccount";

export interface InClusterOptions {
  readonly clock: Clock;
  /** Default: this process's. */
  readonly environment?: (name: string) => string | undefined;
  /** Default: {@linkcode SERVICE_ACCOUNT_FOLDER}. */
  readonly folder?: string;
}

/**
 * Looks around in the Pod.
 *
 * @throws {KubernetesConfigError} When this is none, or one without a token.
 */
export function inClusterAccess(options: InClusterOptions): KubernetesAccess {
  const environment = options.environment ?? ((name) => Deno.env.get(name));
  const host = environment("KUBERNETES_SERVICE_HOST") ?? "";
  const port = environment("KUBERNETES_SERVICE_PORT") ?? "";
  if (host === "" || port === "") {
    throw new KubernetesConfigError(
      "Cannot find the Kubernetes API server: KUBERNETES_SERVICE_HOST and " +
        "KUBERNETES_SERVICE_PORT are not set, so this is no Pod; give " +
        "--kubeconfig",
    );
  }
  const { clock, folder = SERVICE_ACCOUNT_FOLDER } = options;
  const tls = new TlsFiles({ ca: `${folder}/ca.crt` }, clock);
  const token = new TokenFile(`${folder}/token`, clock);
  return {
    server: `https://${bracketed(host)}:${port}`,
    namespace: readNamespace(`${folder}/namespace`),
    authority: () => tls.current.ca,
    credential: async (): Promise<Credential> => ({
      authorization: `Bearer ${await token.current()}`,
    }),
    rejected: () => {
      token.expire();
      tls.expire();
    },
  };
}

function readNamespace(path: string): string {
  try {
    return Deno.readTextFileSync(path).trim() || "default";
  } catch (error) {
    // Projected tokens come without it now and then; kubectl assumes the same.
    if (error instanceof Deno.errors.NotFound) return "default";
    throw new KubernetesConfigError(
      `Cannot read namespace ${path}: ${messageOf(error)}`,
      { cause: error },
    );
  }
}
