/**
 * Access to an API server that wants nothing to be shown: on its insecure port,
 * or behind `kubectl proxy`.
 *
 * @module
 */

import type { KubernetesAccess } from "./access.ts";
import { KubernetesConfigError } from "./errors.ts";

/**
 * @param address `http://HOST:PORT`, `https://…`, or `HOST:PORT` as kube-proxy's
 *   `--master` has it.
 * @throws {KubernetesConfigError} When it is no such address.
 */
export function openAccess(address: string): KubernetesAccess {
  const text = /^https?:\/\//.test(address) ? address : `http://${address}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const hasMore = url === undefined || url.username !== "" ||
    url.search !== "" || url.hash !== "";
  if (hasMore) {
    throw new KubernetesConfigError(
      `Cannot use "${address}" as an API server: wanted http://HOST:PORT`,
    );
  }
  return {
    server: url.href.replace(/\/$/, ""),
    namespace: "default",
    authority: () => undefined,
    credential: () => Promise.resolve({}),
    rejected: () => {},
  };
}
