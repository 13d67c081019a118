// deno-lint-ignore-file no-console -- a command that says what it wrote.
/**
 * Writes the modules of messages from the `.proto` files.
 *
 * A `.proto` file is the one statement of what a message is: names, numbers,
 * types, rules, comments. Out of it come the TypeScript types, the descriptor
 * that encodes and decodes, and the paths of methods; what is written by hand is
 * about them (limits, unions, checks). The hot packets (`konnectivity.proto`) have
 * a codec of their own, which is tested against the file.
 *
 * The modules are in the repository, so that a clone runs without a build step.
 *
 * Usage: `deno task messages`. A test beside this file fails while a module is
 * not current.
 *
 * @module
 */

import { type MessageModule, messageModule } from "./message_module.ts";
import { ifThere } from "../platform/files/file_error.ts";

/** Where the repository is. */
const ROOT = new URL("../", import.meta.url);

/** What most modules have. */
const PLAIN = {
  codecs: {
    path: "proto/grpc/message_codec.ts",
    schema: "Schema",
  },
  fields: "all",
} as const;

/** The subset of xDS, in the order in which files need each other. */
const XDS_PROTOS = [
  ...["protobuf", "status", "type", "matcher", "xds_core", "xds_matcher"],
  ...["core", "endpoint", "cluster", "http_protocol_options"],
  ...["http_11_proxy", "raw_buffer", "route", "previous_hosts"],
  ...["previous_priorities", "listener", "tcp_proxy", "udp_proxy"],
  ...["http_connection_manager", "router", "discovery"],
].map((name) => `proto/xds/protos/${name}.proto`);

/** The model (`discovery.ts`) has requests, responses and resources, too. */
const XDS_NAMES: ReadonlyMap<string, string> = new Map([
  ["google.rpc.Status", "RpcStatus"],
  ["xds.core.v3.TypedExtensionConfig", "MatcherAction"],
  ["envoy.config.core.v3.HttpProtocolOptions", "CommonHttpProtocolOptions"],
  ["envoy.extensions.filters.udp.udp_proxy.v3.Route", "UdpRoute"],
  ["tunnel.v1.Service", "TunnelService"],
  ...[
    ...["DiscoveryRequest", "DiscoveryResponse", "Resource"],
    ...["DeltaDiscoveryRequest", "DeltaDiscoveryResponse"],
  ].map((name) =>
    [`envoy.service.discovery.v3.${name}`, `${name}Message`] as const
  ),
]);

/** What is generated, from the root of the repository. */
// deno-fmt-ignore: the columns are the point.
export const MODULES: readonly MessageModule[] = [
  { path: "proto/grpc/health_messages.ts", protos: ["proto/health.proto"], ...PLAIN,
    names: new Map([["grpc.health.v1.HealthCheckResponse.ServingStatus", "ServingStatus"]]), named: ["ServingStatus"] },
  { path: "proto/identity/identity_messages.ts", protos: ["proto/identity/identity.proto"], ...PLAIN,
    named: ["Enrolment", "Pending"] },
  {
    path: "neighbours/etcd/etcd_messages.ts",
    protos: ["neighbours/etcd/kv.proto", "neighbours/etcd/rpc.proto"],
    ...PLAIN,
    named: [
      "KeyValue", "Event", "ResponseHeader", "Compare", "Compare_CompareResult", "Compare_CompareTarget", "RequestOp",
    ],
  },
  { path: "proto/link/forwarding_messages.ts", protos: ["proto/link/forwarding.proto"], ...PLAIN,
    named: ["ForwardedCaller"] },
  { path: "proto/link/link_messages.ts", protos: ["proto/link/link.proto"], ...PLAIN,
    named: ["ServerHello", "AgentHello", "AnnouncedService", "PeerServer", "ServiceRefusal"] },
  {
    path: "proto/xds/xds_messages.ts",
    protos: [...XDS_PROTOS, "proto/xds/service.proto"],
    codecs: { path: "proto/xds/message_kind.ts", schema: "XdsSchema" },
    fields: "present",
    alone: [
      ...["google.protobuf.Any", "google.protobuf.Struct"],
      ...["google.rpc.Status", "envoy.config.core.v3.Address"],
      ...["envoy.config.core.v3.Metadata", "envoy.config.core.v3.Node"],
      "envoy.config.endpoint.v3.ClusterLoadAssignment",
      "envoy.config.route.v3.RouteConfiguration",
    ],
    names: XDS_NAMES,
    named: [
      "Duration", "Value", "ApiVersion", "HealthStatus", "Locality", "SocketAddress_Protocol", "ConfigSource",
      "TransportSocket", "HealthCheck", "LbEndpoint", "LocalityLbEndpoints", "OutlierDetection",
      "Cluster_DiscoveryType", "Cluster_LbPolicy", "Cluster_RingHashLbConfig_HashFunction", "RouteMatch",
      "RetryPolicy", "RouteAction", "Route", "VirtualHost", "TunnelService_Port", "TunnelService_HealthCheck",
      "TunnelService_Policy", "TunnelService_Endpoint",
    ],
  },
];

/** What the file has to be, as `deno fmt` leaves it. */
export async function generated(module: MessageModule): Promise<string> {
  const texts = await Promise.all(
    module.protos.map(async (path) =>
      [path, await Deno.readTextFile(new URL(path, ROOT))] as const
    ),
  );
  return await formatted(messageModule(module, new Map(texts)));
}

/** What the file is; empty when there is none. */
export async function current({ path }: MessageModule): Promise<string> {
  return await ifThere(Deno.readTextFile(new URL(path, ROOT))) ?? "";
}

async function formatted(source: string): Promise<string> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--quiet", "--ext=ts", "-"],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const output = child.output();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(source));
  await writer.close();
  const { success, stdout } = await output;
  if (!success) throw new Error("Cannot format what was generated");
  return new TextDecoder().decode(stdout);
}

if (import.meta.main) {
  for (const module of MODULES) {
    const text = await generated(module);
    if (text === await current(module)) continue;
    await Deno.writeTextFile(new URL(module.path, ROOT), text);
    console.log(`${module.path} is written`);
  }
}
