/**
 * What `.proto` files say, as source of the data that protobufjs makes types of.
 *
 * Only what encoding needs, and the published rules: no comments, no services. What
 * it does not know is an error.
 *
 * @module
 */

import protobuf from "protobufjs";

/** Packages by name with their messages and enums, each in a line. */
export function descriptorOf(
  packages: readonly protobuf.NamespaceBase[],
): string {
  const parts = packages.map((one) => {
    const messages = Object.entries(nestedDescriptors(one) ?? {})
      .map(([name, descriptor]) => `    ${name}: ${literal(descriptor)},\n`);
    return `  "${one.fullName.slice(1)}": {\n${messages.join("")}  },\n`;
  });
  return `{\n${parts.join("")}}`;
}

/** Messages and enums as `protobuf.Namespace.addJSON` takes them. */
function nestedDescriptors(
  space: protobuf.NamespaceBase,
): Record<string, unknown> | undefined {
  const described = space.nestedArray.flatMap((one) => {
    if (one instanceof protobuf.Type) {
      return [[one.name, typeDescriptor(one)] as const];
    }
    return one instanceof protobuf.Enum
      ? [[one.name, { values: one.values }] as const]
      : [];
  });
  return described.length === 0 ? undefined : Object.fromEntries(described);
}

function typeDescriptor(type: protobuf.Type): Record<string, unknown> {
  const choices = type.oneofsArray.map((one) => {
    return [one.name, { oneof: one.oneof, options: optionsOf(one) }];
  });
  const fields = type.fieldsArray.map((field) => [field.name, {
    ...field instanceof protobuf.MapField ? { keyType: field.keyType } : {},
    ...field.repeated ? { rule: "repeated" } : {},
    type: field.resolvedType?.fullName.slice(1) ?? field.type,
    id: field.id,
    options: optionsOf(field),
  }]);
  return {
    oneofs: choices.length === 0 ? undefined : Object.fromEntries(choices),
    fields: Object.fromEntries(fields),
    nested: nestedDescriptors(type),
  };
}

/**
 * As the text has them; protobufjs itself spreads what is nested in them.
 *
 * @throws {TypeError} For one that may change what is on the wire.
 */
function optionsOf(one: protobuf.ReflectionObject): object | undefined {
  for (const name of Object.keys(one.options ?? {})) {
    // What is optional is the only member of a `oneof`, which says it all.
    if (name.startsWith("(validate.") || name === "proto3_optional") continue;
    throw new TypeError(`${one.fullName.slice(1)} has an option: ${name}`);
  }
  const parsed = one.parsedOptions as readonly object[] | null;
  return parsed === null ? undefined : Object.assign({}, ...parsed);
}

/** Data as source, in one line. */
function literal(data: unknown): string {
  if (Array.isArray(data)) return `[${data.map(literal).join(", ")}]`;
  if (typeof data !== "object" || data === null) return JSON.stringify(data);
  const members = Object.entries(data).flatMap(([key, value]) =>
    value === undefined ? [] : [`${memberName(key)}: ${literal(value)}`]
  );
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}

function memberName(key: string): string {
  return /^[A-Za-z_]\w*$/.test(key) ? key : JSON.stringify(key);
}
