/**
 * What a service in a catalog document wants otherwise than the proxy has it.
 *
 * @module
 */

import {
  BALANCES,
  type Ejection,
  ENDPOINT_ENDS,
  NO_POLICY,
  type ServicePolicy,
  type ServicePort,
} from "../../model/model.ts";
import { withoutAbsent } from "../../model/plain_data.ts";
import type { DocumentMap } from "../../../../platform/documents/document_map.ts";
import { readHealth } from "./document_health.ts";

/** All there are. */
export const POLICY_FIELDS = [
  "balance",
  "zoneAware",
  "nodeAware",
  "dialTimeout",
  "udpIdle",
  "drain",
  "onEndpointRemoved",
  "onEndpointDown",
  "endpointDrain",
  "idleTimeout",
  "halfClosedTimeout",
  "userTimeout",
  "agentOnFailure",
  "health",
  "ejection",
] as const;

/**
 * @param policy Absent: it wants nothing.
 * @throws {FieldError}
 */
export function readServicePolicy(
  policy: DocumentMap | undefined,
  ports: readonly ServicePort[],
): ServicePolicy {
  if (policy === undefined) return NO_POLICY;
  return withoutAbsent({
    balance: policy.word("balance", BALANCES),
    zoneAware: policy.flag("zoneAware"),
    nodeAware: policy.flag("nodeAware"),
    dialTimeoutMs: policy.duration("dialTimeout"),
    udpIdleMs: policy.duration("udpIdle"),
    drainMs: policy.duration("drain", 0),
    onEndpointRemoved: policy.word("onEndpointRemoved", ENDPOINT_ENDS),
    onEndpointDown: policy.word("onEndpointDown", ENDPOINT_ENDS),
    endpointDrainMs: policy.duration("endpointDrain"),
    idleTimeoutMs: policy.duration("idleTimeout", 0),
    halfClosedTimeoutMs: policy.duration("halfClosedTimeout", 0),
    userTimeoutMs: policy.duration("userTimeout", 0),
    agentOnFailure: policy.flag("agentOnFailure"),
    health: readHealth(policy, ports),
    ejection: readEjection(policy),
  });
}

function readEjection(policy: DocumentMap): Partial<Ejection> | undefined {
  const ejection = policy.map("ejection", ["failures", "time"]);
  return ejection && withoutAbsent({
    failures: ejection.number("failures", 0, 1_000),
    timeMs: ejection.duration("time"),
  });
}
