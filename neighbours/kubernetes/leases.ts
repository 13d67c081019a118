/**
 * Server leases, by which Konnectivity's servers say that they are there and
 * its agents learn how many there are.
 *
 * @module
 */

import type { Lease } from "./objects.ts";

/** How long a lease holds after it was renewed, as upstream. */
export const LEASE_SECONDS = 30;

/** Time between two renewals, and between two looks for expired ones. */
export const RENEW_MS = 15_000;

/** The name of a server's lease; what upstream calls it. */
export function leaseName(serverId: string): string {
  return `konnectivity-proxy-server-${serverId}`;
}

/**
 * When a lease ends, by the clock of the one that renewed it.
 *
 * @returns Milliseconds since 1970; `undefined` when it says nothing of time,
 *   and so does not hold.
 */
export function leaseEndMs({ spec }: Lease): number | undefined {
  const from = Date.parse(spec?.renewTime ?? spec?.acquireTime ?? "");
  const seconds = spec?.leaseDurationSeconds;
  if (Number.isNaN(from) || seconds === undefined) return undefined;
  return from + seconds * 1000;
}
