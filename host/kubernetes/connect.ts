/**
 * A client of the API server that a `--kubeconfig` flag means: the file's, or
 * this Pod's own when it is empty.
 *
 * @module
 */

import type { Timers } from "../../proto/sync/clock.ts";
import type { KubernetesAccess } from "./access.ts";
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
 * Whether the API server's CA is named. If so, no public one is needed to reach
 * it, and had better not be trusted.
 *
 * @throws {KubernetesConfigError} One sentence.
 */
export function namesAuthority(
  options: KubernetesOptions,
  timers: Timers,
): boolean {
  return accessOf(options, timers).authority() !== undefined;
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
  { kubeconfig }: KubernetesOptions,
  timers: Timers,
): KubernetesAccess {
  return kubeconfig === undefined
    ? inClusterAccess({ clock: timers })
    : kubeconfigAccess(kubeconfig, { clock: timers });
}
