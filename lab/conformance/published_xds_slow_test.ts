/**
 * Our subset of xDS against the texts that grpc-js-xds was made of: whatever we
 * have is there, with the same number, type, label and rules.
 */

import { assert, assertEquals } from "@std/assert";
import protobuf from "protobufjs";
import { publishedRoot } from "./published_xds.ts";

/** The files of our subset. */
const OWN_PROTOS = new URL("../../proto/xds/protos/", import.meta.url);

function* objectsOf(
  parent: protobuf.NamespaceBase,
): Generator<protobuf.ReflectionObject> {
  for (const child of parent.nestedArray) {
    yield child;
    if (child instanceof protobuf.Namespace) yield* objectsOf(child);
  }
}

/** Rules of these texts that newer ones have no more. */
const RULES_GIVEN_UP = new Set([
  ".envoy.extensions.transport_sockets.http_11_proxy.v3" +
  ".Http11ProxyUpstreamTransport.transportSocket",
]);

/** All that two ends have to agree on. */
function described(field: protobuf.Field) {
  const { id, type, repeated, packed, resolvedType } = field;
  return {
    ...{ id, repeated, packed: repeated && packed },
    type: resolvedType?.fullName ?? type,
    ...(field instanceof protobuf.MapField ? { keyType: field.keyType } : {}),
    oneof: field.partOf?.name,
    rules: RULES_GIVEN_UP.has(field.fullName)
      ? undefined
      : optionOf(field, "(validate.rules)"),
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
  for await (const { name } of Deno.readDir(OWN_PROTOS)) {
    protobuf.parse(await Deno.readTextFile(new URL(name, OWN_PROTOS)), ours);
  }
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
