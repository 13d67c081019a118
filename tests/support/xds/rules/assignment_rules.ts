/**
 * What clients demand of a cluster's endpoints, beyond the rules of its fields.
 *
 * Part of `validation.ts`.
 *
 * @module
 */

import type {
  ClusterLoadAssignment,
  LbEndpoint,
  LocalityLbEndpoints,
} from "../../../../proto/xds/xds_messages.ts";
import { isIpAddress } from "../../../../proto/peer/ip_address.ts";

/** Weights together, of endpoints in a locality and of localities. */
const WEIGHTS_MAX = 0xffff_ffff;

/** Problems of an assignment, in the order of its fields. */
export function* assignmentProblems(
  { endpoints = [] }: ClusterLoadAssignment,
): Generator<string, undefined> {
  const weights = new Map<number, number>();
  const localities = new Set<string>();
  const sockets = new Set<string>();
  for (const [index, group] of endpoints.entries()) {
    const path = `endpoints[${index}]`;
    const { locality, loadBalancingWeight, priority = 0 } = group;
    if (locality === undefined) yield `${path}.locality has to be set`;
    if (loadBalancingWeight === undefined) {
      yield `${path}.load_balancing_weight has to be set`;
    }
    const sum = (weights.get(priority) ?? 0) +
      (loadBalancingWeight?.value ?? 0);
    weights.set(priority, sum);
    if (sum > WEIGHTS_MAX) {
      yield `weights of localities of priority ${priority} are ${sum} together`;
    }
    const { region = "", zone = "", subZone = "" } = locality ?? {};
    const key = JSON.stringify([priority, region, zone, subZone]);
    if (localities.has(key)) yield `${path}.locality is there already`;
    localities.add(key);
    yield* groupProblems(group, path, sockets);
  }
  const highest = Math.max(-1, ...weights.keys());
  for (let priority = 0; priority < highest; priority++) {
    if (!weights.has(priority)) {
      yield `endpoints have priority ${highest} and not ${priority}`;
    }
  }
}

function* groupProblems(
  { lbEndpoints = [] }: LocalityLbEndpoints,
  path: string,
  sockets: Set<string>,
): Generator<string, undefined> {
  let weights = 0;
  for (let index = 0; index < lbEndpoints.length; index++) {
    const one = lbEndpoints[index]!;
    weights += one.loadBalancingWeight?.value ?? 1;
    const problem = endpointProblem(one, sockets);
    if (problem !== undefined) {
      yield `${path}.lb_endpoints[${index}].endpoint.address ${problem}`;
    }
  }
  if (weights > WEIGHTS_MAX) {
    yield `weights of ${path}.lb_endpoints are ${weights} together`;
  }
}

function endpointProblem(
  { endpoint }: LbEndpoint,
  sockets: Set<string>,
): string | undefined {
  const socket = endpoint?.address?.socketAddress;
  if (socket === undefined) return "has to be set";
  const { address = "", portValue = 0 } = socket;
  if (portValue === 0) return "has port 0";
  if (!isIpAddress(address)) {
    return `is ${JSON.stringify(address)}, which is no IP`;
  }
  const place = `${address} ${portValue}`;
  if (sockets.has(place)) return `is ${place}, which is there already`;
  sockets.add(place);
  return undefined;
}
