/**
 * A client of the API server that a `--kubeconfig` flag means: the file's, or
 * this Pod's own when it is empty, at another address if that is given.
 *
 * @module
 */

import type { Clock, Timers } from "../../proto/sync/clock.ts";
import { credentialOf, type KubernetesAccess, TokenFile } from "./access.ts";
import { KubernetesClient } from "./client.ts";
import { kubeconfigAccess } from "./kubeconfig.ts";
import { messageOf } from "../../platform/errors/error_code.ts";
import { bracketed } from "../../proto/peer/host_port.ts";
import { NeighbourConfigError, TlsFiles } from "../tls_files.ts";

/** The API server, and the limit on requests. */
export interface KubernetesOptions {
  /** A file; absent: in-cluster. */
  readonly kubeconfig?: string;
  /** Used in place of both: the address of an API server. */
  readonly master?: string;
  /** The options beside `master`. */
  readonly masterFiles?: OpenAccessFiles;
  /**
   * In-cluster only: the address of the API server, if it differs from the
   * Pod's environment.
   */
  readonly apiServer?: { readonly host: string; readonly port: number };
  readonly rate?: { readonly perSecond: number; readonly burst: number };
}

/**
 * Reads the configuration. No request is sent yet.
 *
 * @param when `late`: it is read with the first request, which fails if that
 *   fails.
 * @throws {NeighbourConfigError} One sentence.
 */
export function connectKubernetes(
  options: KubernetesOptions,
  timers: Timers,
  when: "now" | "late" = "now",
): KubernetesClient {
  const { rate } = options;
  let opened: KubernetesAccess | undefined;
  const access = () => opened ??= accessOf(options, timers);
  if (when === "now") access();
  return new KubernetesClient({
    access,
    timers,
    random: Math.random,
    rate,
  });
}

function accessOf(
  { kubeconfig, apiServer, master, masterFiles = {} }: KubernetesOptions,
  timers: Timers,
): KubernetesAccess {
  if (master !== undefined) return openAccess(master, masterFiles, timers);
  if (kubeconfig !== undefined) {
    return kubeconfigAccess(kubeconfig, timers);
  }
  if (apiServer === undefined) return inClusterAccess({ clock: timers });
  const { host, port } = apiServer;
  const environment = (name: string) =>
    name === "KUBERNETES_SERVICE_HOST" ? host : `${port}`;
  return inClusterAccess({ clock: timers, environment });
}

// Access to an API server whose address alone is given: one that wants nothing
// to be shown, on its insecure port or behind `kubectl proxy`, or one that wants
// a client certificate.

/** Paths of PEM files, which are looked at again. */
export interface OpenAccessFiles {
  /** Whose certificate the API server has; absent: a public one's. */
  readonly ca?: string;
  /** A client certificate and its key: both or none. */
  readonly cert?: string;
  readonly key?: string;
}

/**
 * @param address `http://HOST:PORT`, `https://…`, or `HOST:PORT` as kube-proxy's
 *   `--master` has it, which is https where there is TLS material.
 * @throws {NeighbourConfigError} When it is no such address, or a file cannot
 *   be used.
 */
export function openAccess(
  address: string,
  files: OpenAccessFiles,
  clock: Clock,
): KubernetesAccess {
  const hasFiles = Object.values(files).some((path) => path !== undefined);
  const scheme = hasFiles ? "https" : "http";
  const text = /^https?:\/\//.test(address)
    ? address
    : `${scheme}://${address}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const hasMore = url === undefined || url.username !== "" ||
    url.search !== "" || url.hash !== "";
  if (hasMore) {
    throw new NeighbourConfigError(
      `Cannot use "${address}" as an API server: wanted ${scheme}://HOST:PORT`,
    );
  }
  if (hasFiles && url.protocol === "http:") {
    throw new NeighbourConfigError(
      `Cannot use certificates with "${address}": http has no TLS; write ` +
        `https://${url.host}, or leave them away`,
    );
  }
  const tls = new TlsFiles(files, clock);
  return {
    server: url.href.replace(/\/$/, ""),
    namespace: "default",
    // Empty texts are absent files.
    authority: () => tls.current.ca || undefined,
    credential: () => Promise.resolve(credentialOf(undefined, tls.current)),
    rejected: () => tls.expire(),
  };
}

// Access to the API server from inside a Pod, as its ServiceAccount.

/**
 * The directory in which a kubelet mounts a Pod's credentials for the API
 * server.
 */
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
 * @throws {NeighbourConfigError} When this is none, or one without a token.
 */
export function inClusterAccess(options: InClusterOptions): KubernetesAccess {
  const environment = options.environment ?? ((name) => Deno.env.get(name));
  const host = environment("KUBERNETES_SERVICE_HOST") ?? "";
  const port = environment("KUBERNETES_SERVICE_PORT") ?? "";
  if (host === "" || port === "") {
    throw new NeighbourConfigError(
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
    credential: async () => credentialOf(await token.current(), {}),
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
    throw new NeighbourConfigError(
      `Cannot read namespace ${path}: ${messageOf(error)}`,
      { cause: error },
    );
  }
}
