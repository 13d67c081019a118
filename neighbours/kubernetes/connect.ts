/**
 * A client of the API server that a `--kubeconfig` flag means: the file's, or
 * this Pod's own when it is empty, at another address if that is given.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import type { KubernetesAccess } from "./access.ts";
import { KubernetesClient } from "./client.ts";
import { inClusterAccess } from "./in_cluster.ts";
import { kubeconfigAccess } from "./kubeconfig.ts";
import { openAccess, type OpenAccessFiles } from "./open_access.ts";

/** Where to, and how often. */
export interface KubernetesOptions {
  /** A file; absent: in-cluster. */
  readonly kubeconfig?: string;
  /** In place of both: the address of an API server. */
  readonly master?: string;
  /** What goes with `master`. */
  readonly masterFiles?: OpenAccessFiles;
  /** In-cluster only: where the API server is, if not where the Pod's environment says. */
  readonly apiServer?: { readonly host: string; readonly port: number };
  readonly rate?: { readonly perSecond: number; readonly burst: number };
}

/**
 * Reads what is needed. Nothing is sent yet.
 *
 * @throws {KubernetesConfigError} One sentence.
 */
export function connectKubernetes(
  options: KubernetesOptions,
  timers: Timers,
): KubernetesClient {
  const { rate } = options;
  return new KubernetesClient({
    access: accessOf(options, timers),
    timers,
    random: Math.random,
    ...(rate === undefined ? {} : { rate }),
  });
}

function accessOf(
  { kubeconfig, apiServer, master, masterFiles = {} }: KubernetesOptions,
  timers: Timers,
): KubernetesAccess {
  if (master !== undefined) return openAccess(master, masterFiles, timers);
  if (kubeconfig !== undefined) {
    return kubeconfigAccess(kubeconfig, { clock: timers });
  }
  if (apiServer === undefined) return inClusterAccess({ clock: timers });
  const { host, port } = apiServer;
  const environment = (name: string) =>
    name === "KUBERNETES_SERVICE_HOST" ? host : `${port}`;
  return inClusterAccess({ clock: timers, environment });
}
