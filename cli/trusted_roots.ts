/**
 * Which authorities this process may believe: no public one, wherever all that
 * it connects to by the platform's own TLS client has a CA that was given.
 *
 * @module
 */

import {
  type KubernetesOptions,
  namesAuthority,
} from "../neighbours/kubernetes/connect.ts";
import { KubernetesConfigError } from "../neighbours/kubernetes/errors.ts";
import { systemTimers } from "../platform/time/system_timers.ts";
import { trustOnlyGivenAuthorities } from "../net/tls/deno/given_authorities.ts";

/**
 * Forgets the public authorities unless an API server needs them.
 *
 * @param kubernetes Of the API server; absent: none is asked.
 * @returns Whether they are forgotten.
 * @throws {KubernetesConfigError} One sentence.
 */
export function forgetPublicRoots(
  kubernetes: KubernetesOptions | undefined,
): boolean {
  const isOwn = kubernetes === undefined ||
    namesAuthority(kubernetes, systemTimers);
  return isOwn && trustOnlyGivenAuthorities();
}

/**
 * The same where configurations may not be there yet: then nobody knows.
 *
 * @param kubernetes Of all API servers that may be asked.
 */
export function forgetPublicRootsIfKnown(
  kubernetes: readonly KubernetesOptions[],
): boolean {
  try {
    const areOwn = kubernetes
      .every((options) => namesAuthority(options, systemTimers));
    return areOwn && trustOnlyGivenAuthorities();
  } catch (error) {
    // Whoever needs it will say so, and says it to the log.
    if (error instanceof KubernetesConfigError) return false;
    throw error;
  }
}
