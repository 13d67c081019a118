/**
 * Access to an API server whose address alone is given: one that wants nothing
 * to be shown, on its insecure port or behind `kubectl proxy`, or one that wants
 * a client certificate.
 *
 * @module
 */

import type { Clock } from "../../proto/sync/clock.ts";
import type { KubernetesAccess } from "./access.ts";
import { KubernetesConfigError } from "./errors.ts";
import { TlsFiles } from "./tls_files.ts";

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
 * @throws {KubernetesConfigError} When it is no such address, or a file cannot
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
    throw new KubernetesConfigError(
      `Cannot use "${address}" as an API server: wanted ${scheme}://HOST:PORT`,
    );
  }
  if (hasFiles && url.protocol === "http:") {
    throw new KubernetesConfigError(
      `Cannot use certificates with "${address}": http has no TLS; write ` +
        `https://${url.host}, or leave them away`,
    );
  }
  const tls = hasFiles ? new TlsFiles(files, clock) : undefined;
  return {
    server: url.href.replace(/\/$/, ""),
    namespace: "default",
    // Empty texts are absent files.
    authority: () => tls?.current.ca || undefined,
    credential: () => {
      const { cert = "", key = "" } = tls?.current ?? {};
      return Promise.resolve(cert === "" ? {} : { keyPair: { cert, key } });
    },
    rejected: () => tls?.expire(),
  };
}
