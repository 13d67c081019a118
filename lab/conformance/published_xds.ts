/**
 * The texts of xDS that grpc-js-xds was made of.
 *
 * @module
 */

import { assert } from "@std/assert";
import protobuf from "protobufjs";
import { findGrpcJs } from "../../tests/support/program/peer_packages.ts";

/** Folders of the package that file names in the texts are relative to. */
const ROOTS = ["envoy-api", "xds", "googleapis", "protoc-gen-validate"];

/** Texts about texts, which need the descriptors of everything. */
const ANNOTATIONS = /^validate\/|\/annotations\//;

/** What imports everything that we have. */
const PUBLISHED = [
  "google/rpc/status.proto",
  "xds/type/matcher/v3/matcher.proto",
  "envoy/service/discovery/v3/discovery.proto",
  "envoy/config/cluster/v3/cluster.proto",
  "envoy/config/endpoint/v3/endpoint.proto",
  "envoy/config/listener/v3/listener.proto",
  "envoy/config/route/v3/route.proto",
  "envoy/extensions/filters/http/router/v3/router.proto",
  "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.proto",
  "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.proto",
  "envoy/config/core/v3/backoff.proto",
  "envoy/extensions/retry/host/previous_hosts/v3/previous_hosts.proto",
  "envoy/extensions/retry/priority/previous_priorities/v3/previous_priorities_config.proto",
  "envoy/extensions/filters/udp/udp_proxy/v3/route.proto",
  "envoy/extensions/filters/udp/udp_proxy/v3/udp_proxy.proto",
  "envoy/extensions/transport_sockets/http_11_proxy/v3/upstream_http_11_connect.proto",
  "envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer.proto",
  "envoy/extensions/upstreams/http/v3/http_protocol_options.proto",
];

/** What Envoy has published since, as it has it. */
const NEWER = {
  "envoy.extensions.filters.network.tcp_proxy.v3": `
message TcpProxy {
  envoy.config.core.v3.BackoffStrategy backoff_options = 18;
}`,
  "envoy.service.discovery.v3": `
message ResourceError {
  ResourceName resource_name = 1;
  google.rpc.Status error_detail = 2;
}
message DiscoveryResponse { repeated ResourceError resource_errors = 7; }`,
} as const;

/** Adds to the types that are there. */
function addNewer(root: protobuf.Root): void {
  for (const [name, text] of Object.entries(NEWER)) {
    const newer = new protobuf.Root();
    protobuf.parse(`syntax = "proto3"; package ${name};${text}`, newer);
    const types = newer.lookup(name) as protobuf.Namespace;
    for (const type of types.nestedArray) {
      const there = root.lookup(`${name}.${type.name}`);
      if (!(there instanceof protobuf.Type)) {
        (root.lookup(name) as protobuf.Namespace).add(type);
        continue;
      }
      for (const field of (type as protobuf.Type).fieldsArray) there.add(field);
    }
  }
}

/** All types that the texts above name. */
export async function publishedRoot(): Promise<protobuf.Root> {
  const packages = `${await findGrpcJs()}/node_modules`;
  const folder = `${packages}/@grpc/grpc-js-xds/deps`;
  const root = new protobuf.Root();
  const parsed = new Set<string>();
  const load = async (name: string): Promise<void> => {
    if (parsed.has(name) || ANNOTATIONS.test(name)) return;
    parsed.add(name);
    const text = await textOf(folder, name) ?? googleText(name);
    if (typeof text !== "string") {
      root.addJSON(text);
      return;
    }
    const { imports = [] } = protobuf.parse(text, root);
    for (const one of imports) await load(one);
  };
  for (const name of PUBLISHED) await load(name);
  addNewer(root);
  root.resolveAll();
  return root;
}

async function textOf(
  folder: string,
  name: string,
): Promise<string | undefined> {
  for (const root of ROOTS) {
    try {
      return await Deno.readTextFile(`${folder}/${root}/${name}`);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
  return undefined;
}

/** Google's own types come with protobufjs. */
function googleText(name: string): Record<string, protobuf.AnyNestedObject> {
  const nested = protobuf.common.get(name)?.nested;
  assert(nested !== undefined, `${name} is nowhere`);
  return nested;
}
