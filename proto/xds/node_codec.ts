/**
 * Nodes (the clients of xDS), out of a request and into one.
 *
 * Layer: xDS. Once per stream. Of Envoy's node the extensions that it was built
 * with are by far the most; they are not kept.
 *
 * @module
 */

import { GrpcError, StatusCode } from "../grpc/status.ts";
import type { DiscoveryNode } from "./discovery.ts";
import { Node } from "./xds_messages.ts";
import { plainOf, structOf } from "./struct_data.ts";

/** An encoded node; Envoy's has some 50 KiB. */
export const NODE_BYTES_MAX = 262_144;

/** Characters of each text of a node: it is kept, logged and shown. */
export const NODE_TEXT_MAX = 1_024;

/** Entries of `client_features`. */
export const CLIENT_FEATURES_MAX = 64;

/**
 * Reads an encoded `envoy.config.core.v3.Node`.
 *
 * @throws {GrpcError} INVALID_ARGUMENT, or RESOURCE_EXHAUSTED over a limit.
 */
export function decodeNode(bytes: Uint8Array): DiscoveryNode {
  if (bytes.length > NODE_BYTES_MAX) {
    throw tooLarge(`${bytes.length} bytes`, `${NODE_BYTES_MAX}`);
  }
  const message = Node.decode(bytes);
  const { region, zone, subZone } = message.locality ?? {};
  const features = message.clientFeatures ?? [];
  if (features.length > CLIENT_FEATURES_MAX) {
    throw tooLarge(`${features.length} features`, `${CLIENT_FEATURES_MAX}`);
  }
  return {
    id: text("id", message.id),
    cluster: text("cluster", message.cluster),
    metadata: plainOf(message.metadata ?? {}),
    locality: {
      region: text("region", region),
      zone: text("zone", zone),
      subZone: text("sub_zone", subZone),
    },
    userAgentName: text("user_agent_name", message.userAgentName),
    userAgentVersion: versionOf(message),
    clientFeatures: features.map((one) => text("client_features", one)),
  };
}

/** The message of a node of ours. */
export function nodeMessage(
  { locality, metadata, ...rest }: DiscoveryNode,
): Node {
  return { ...rest, metadata: structOf(metadata), locality };
}

function versionOf({ userAgentVersion, userAgentBuildVersion }: Node): string {
  if (userAgentVersion !== undefined) {
    return text("user_agent_version", userAgentVersion);
  }
  const version = userAgentBuildVersion?.version;
  if (version === undefined) return "";
  const { majorNumber = 0, minorNumber = 0, patch = 0 } = version;
  return `${majorNumber}.${minorNumber}.${patch}`;
}

function text(field: string, value = ""): string {
  if (value.length <= NODE_TEXT_MAX) return value;
  throw tooLarge(
    `a ${field} of ${value.length} characters`,
    `${NODE_TEXT_MAX}`,
  );
}

function tooLarge(what: string, most: string): GrpcError {
  return new GrpcError(
    StatusCode.RESOURCE_EXHAUSTED,
    `Cannot read a node: it has ${what}, at most ${most} are accepted`,
  );
}
