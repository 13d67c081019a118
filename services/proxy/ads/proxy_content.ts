/**
 * What resources say to a node proxy: services and endpoints of the catalog, as
 * a tunnel's discovery server writes them (`services/catalog/discovery_metadata.ts`).
 *
 * What it cannot use it refuses by a sentence that names the field; nothing is
 * guessed, for a server of another make means other things by its clusters.
 *
 * @module
 */

import {
  MetadataError,
  readClusterMetadata,
  readEndpointMetadata,
  TUNNEL_METADATA,
} from "../../catalog/discovery_metadata.ts";
import { type Endpoint, keyOf } from "../../catalog/model/model.ts";
import { resourceNameOf } from "../../catalog/model/resource_names.ts";
import { checkEndpoints, checkService } from "../../catalog/model/validate.ts";
import {
  assignmentNameOf,
  type DecodedResource,
  needsOf,
  readResource,
} from "../../ads/read_resource.ts";
import {
  RefusedResource,
  type ResourceReader,
  type UsableResource,
} from "../../ads/received.ts";
import { FieldError } from "../../../platform/documents/document_map.ts";
import { GrpcError } from "../../../proto/grpc/status.ts";
import type { ReceivedResource } from "../../../proto/xds/discovery.ts";
import type {
  Cluster,
  ClusterLoadAssignment,
  LbEndpoint,
  Metadata,
} from "../../../proto/xds/xds_messages.ts";
import type { ResourceKind } from "../../../proto/xds/resource.ts";
import { plainOf } from "../../../proto/xds/struct_data.ts";
import {
  type AssignmentContent,
  type ClusterContent,
  type Content,
} from "./service_assembly.ts";

export const readForProxy: ResourceReader<Content> = (
  kind: ResourceKind,
  resource: ReceivedResource,
): UsableResource<Content> => {
  const read = readResource(kind, resource);
  try {
    return { content: contentOf(resource.name, read), needs: needsOf(read) };
  } catch (error) {
    const isItsFault = error instanceof MetadataError ||
      error instanceof FieldError || error instanceof GrpcError;
    if (!isItsFault) throw error;
    throw new RefusedResource(error.message);
  }
};

function contentOf(name: string, resource: DecodedResource): Content {
  switch (resource.kind) {
    case "cluster":
      return clusterContent(name, resource.message);
    case "endpoints":
      return assignmentContent(name, resource.message);
    case "listener":
    case "route":
      return { kind: resource.kind };
  }
}

function clusterContent(name: string, cluster: Cluster): ClusterContent {
  const { service, port } = readClusterMetadata(
    tunnelMetadata(cluster.metadata),
  );
  const problem = checkService(service);
  if (problem !== undefined) throw new MetadataError(problem);
  const own = service.ports.find((each) => each.name === port);
  const wanted = own && resourceNameOf(keyOf(service), own);
  if (name !== wanted) {
    throw new MetadataError(
      `it is of the port "${port}" of ${keyOf(service)}, wanted the name ${
        wanted ?? "of one of its ports"
      }`,
    );
  }
  const assignment = assignmentNameOf(cluster);
  if (assignment === undefined) {
    throw new MetadataError("its endpoints do not come by EDS");
  }
  return { kind: "cluster", service, port, assignment };
}

function assignmentContent(
  name: string,
  { endpoints: localities = [] }: ClusterLoadAssignment,
): AssignmentContent {
  const endpoints = localities.flatMap(({ lbEndpoints = [], locality }) =>
    lbEndpoints.map((each) => endpointOf(each, locality?.zone))
  );
  // The name is that of a cluster, which was checked, or nobody asked for it.
  const service = name.replace(/:\d+(?:\/udp)?$/, "");
  const problem = checkEndpoints({ service, endpoints });
  if (problem !== undefined) throw new MetadataError(problem);
  return { kind: "endpoints", endpoints };
}

function endpointOf(
  { endpoint, metadata, loadBalancingWeight }: LbEndpoint,
  zone: string | undefined,
): Endpoint {
  const { address = "", portValue = 0 } = endpoint?.address?.socketAddress ??
    {};
  const plain = {
    address,
    port: portValue,
    weight: loadBalancingWeight?.value ?? 0,
  };
  const read = readEndpointMetadata(plain, tunnelMetadata(metadata));
  return read.zone !== undefined || zone === undefined || zone === ""
    ? read
    : { ...read, zone };
}

function tunnelMetadata(metadata: Metadata | undefined): unknown {
  const struct = metadata?.filterMetadata?.[TUNNEL_METADATA];
  return struct && plainOf(struct);
}
