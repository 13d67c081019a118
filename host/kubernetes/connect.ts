/**
 * A client of the API server that a `--kubeconfig` flag means: the file's, or
 * this Pod's own when it is empty.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import { KubernetesClient } from "./client.ts";
import { inClusterAccess } from "./in_cluster.ts";
import { kubeconfigAccess } from "./kubeconfig.ts";

/** Where to, and how often. */
export interface KubernetesOptions {
  /** A file; absent: in-cluster. */
  readonly kubeconfig?: string;
  readonly rate?: { readonly perSecond: number; readonly burst: number };
}

/**
 * Reads what is needed. Nothing is sent yet.
 *
 * @throws {KubernetesConfigError} One sentence.
 */
export function connectKubernetes(
  { kubeconfig, rate }: KubernetesOptions,
  timers: Timers,
): KubernetesClient {
  const access = kubeconfig === undefined
    ? inClusterAccess({ clock: timers })
    : kubeconfigAccess(kubeconfig, { clock: timers });
  return new KubernetesClient({
    access,
    timers,
    random: Math.random,
    ...(rate === undefined ? {} : { rate }),
  });
}
