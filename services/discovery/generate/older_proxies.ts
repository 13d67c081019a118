/**
 * Clusters and load assignments as node proxies of versions without
 * `tunnel.v1.Service` read them: fields of xDS hold what they can, and `tunnel`
 * in the metadata of clusters and endpoints holds the rest. Such a proxy then
 * goes on when its server is upgraded first.
 *
 * In a cluster that is `{service, port}`, the whole service and the name of the
 * port; an assignment has one locality, so that the order stays.
 *
 * @module
 */

import {
  type Endpoint,
  endpointPort,
  type EndpointState,
  keyOf,
  resourceNameOf,
  type Service,
  type ServicePort,
} from "../../catalog/model/model.ts";
import { structOf } from "../../../proto/xds/struct_data.ts";
import {
  type Cluster,
  type ClusterLoadAssignment,
  HealthStatus,
  type LbEndpoint,
  type Metadata,
} from "../../../proto/xds/xds_messages.ts";
import { socketAddress, weightOf } from "./assignments.ts";
import { plainCluster } from "./clusters.ts";
import type { ServiceInput } from "./service_resources.ts";

/** The cluster of one port. */
export function proxyCluster(service: Service, port: ServicePort): Cluster {
  return {
    ...plainCluster(resourceNameOf(keyOf(service), port)),
    metadata: metadataOf({ service, port: port.name }),
  };
}

/** All endpoints of one port. */
export function proxyAssignment(
  { service, endpoints }: ServiceInput,
  port: ServicePort,
): ClusterLoadAssignment {
  const lbEndpoints = endpoints.flatMap((endpoint) => {
    const at = endpointPort(endpoint, port.name);
    return at === undefined ? [] : [proxyEndpoint(endpoint, at, port)];
  });
  return {
    clusterName: resourceNameOf(keyOf(service), port),
    endpoints: lbEndpoints.length === 0
      ? []
      : [{ locality: {}, loadBalancingWeight: { value: 1 }, lbEndpoints }],
  };
}

/** For clients that do not read our metadata, which has the exact state. */
const HEALTH: Readonly<Record<EndpointState, number>> = {
  ready: HealthStatus.HEALTHY,
  serving: HealthStatus.DRAINING,
  terminating: HealthStatus.DRAINING,
  unready: HealthStatus.UNHEALTHY,
};

function proxyEndpoint(
  endpoint: Endpoint,
  portValue: number,
  { protocol }: ServicePort,
): LbEndpoint {
  const form = formOf(endpoint);
  return {
    endpoint: { address: socketAddress(endpoint.address, portValue, protocol) },
    healthStatus: HEALTH[endpoint.state],
    metadata: Object.keys(form).length === 0 ? undefined : metadataOf(form),
    loadBalancingWeight: weightOf(endpoint),
  };
}

/** Empty: address, port and weight say it all. */
function formOf({ ports, state, node, zone, forZones, via }: Endpoint): object {
  const [only] = ports;
  return {
    // The number of the only one is that of the assignment.
    ...only === undefined || ports.length > 1
      ? { ports }
      : only.name === ""
      ? {}
      : { port: only.name },
    ...state === "ready" ? {} : { state },
    ...node === undefined ? {} : { node },
    ...zone === undefined ? {} : { zone },
    ...forZones === undefined ? {} : { forZones },
    ...via.kind === "direct" ? {} : { via: via.agent ?? "agent" },
  };
}

function metadataOf(form: object): Metadata {
  return { filterMetadata: { tunnel: structOf({ ...form }) } };
}
