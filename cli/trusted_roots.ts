/**
 * Which authorities this process may believe: no public one, wherever all that
 * it connects to by the platform's own TLS client has a CA that was given.
 *
 * @module
 */

import {
  type KubernetesOptions,
  namesAuthority,
} from "../host/kubernetes/connect.ts";
import { systemTimers } from "../host/system_timers.ts";
import { trustOnlyGivenAuthorities } from "../host/tls/given_authorities.ts";

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
