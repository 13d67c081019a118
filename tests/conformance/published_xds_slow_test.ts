/**
 * Our subset of xDS against the texts that grpc-js-xds was made of: whatever we
 * have is there, with the same number, type, label and rules.
 */

import { assert, assertEquals } from "@std/assert";
import protobuf from "protobufjs";
import { findGrpcJs } from "../peers/packages.ts";
import { XDS_PROTOS } from "../../proto/xds/schema.ts";

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
  "envoy/extensions/filters/udp/udp_proxy/v3/route.proto",
  "envoy/extensions/filters/udp/udp_proxy/v3/udp_proxy.proto",
  "envoy/extensions/transport_sockets/http_11_proxy/v3/upstream_http_11_connect.proto",
  "envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer.proto",
  "envoy/extensions/upstreams/http/v3/http_protocol_options.proto",
];

async function publishedRoot(): Promise<protobuf.Root> {
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

function* objectsOf(
  parent: protobuf.NamespaceBase,
): Generator<protobuf.ReflectionObject> {
  for (const child of parent.nestedArray) {
    yield child;
    if (child instanceof protobuf.Namespace) yield* objectsOf(child);
  }
}

/** All that two ends have to agree on. */
function described(field: protobuf.Field) {
  const { id, type, repeated, packed, resolvedType } = field;
  return {
    ...{ id, repeated, packed: repeated && packed },
    type: resolvedType?.fullName ?? type,
    ...(field instanceof protobuf.MapField ? { keyType: field.keyType } : {}),
    oneof: field.partOf?.name,
    rules: optionOf(field, "(validate.rules)"),
  };
}

/** What a text says about one of its own objects. */
function optionOf(object: protobuf.ReflectionObject, name: string): unknown {
  const options = (object.parsedOptions ?? []) as Record<string, unknown>[];
  return options.find((option) => name in option)?.[name];
}

Deno.test("our subset of xDS is a subset of what is published", async () => {
  const published = await publishedRoot();
  const ours = new protobuf.Root();
  for (const text of XDS_PROTOS) protobuf.parse(text, ours);
  ours.resolveAll();
  let fields = 0;
  for (const own of objectsOf(ours)) {
    if (own instanceof protobuf.Enum) {
      const { values } = published.lookupEnum(own.fullName);
      for (const [name, number] of Object.entries(own.values)) {
        assertEquals(number, values[name], `${own.fullName}.${name}`);
      }
    } else if (own instanceof protobuf.Type) {
      const theirs = published.lookupType(own.fullName);
      assertEquals(theirs.fullName, own.fullName);
      for (const choice of own.oneofsArray) {
        const required = "(validate.required)";
        assertEquals(
          optionOf(choice, required),
          optionOf(theirs.oneofs[choice.name]!, required),
          `${own.fullName}.${choice.name}`,
        );
      }
      for (const field of own.fieldsArray) {
        const other = snakeOrCamel(theirs, field.name);
        assert(other !== undefined, `${own.fullName} has no ${field.name}`);
        const name = `${own.fullName}.${field.name}`;
        assertEquals(described(field), described(other), name);
        fields++;
      }
    }
  }
  assert(fields > 250, `only ${fields} fields were compared`);
});

/** Descriptors that come with protobufjs keep their underscores. */
function snakeOrCamel(
  type: protobuf.Type,
  name: string,
): protobuf.Field | undefined {
  const snake = name.replaceAll(/[A-Z]/g, (one) => `_${one.toLowerCase()}`);
  return type.fields[name] ?? type.fields[snake];
}
