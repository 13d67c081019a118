/**
 * The shape of a document as JSON Schema (draft 2020-12), for editors.
 *
 * @module
 */

import type { MapShape, Shape } from "./shape.ts";

/** A schema; what it may hold is the specification's to say. */
export type JsonSchema = Readonly<Record<string, unknown>>;

const DIALECT = "https://json-schema.org/draft/2020-12/schema";

/** Go's durations, as `parseGoDuration` reads them. */
const DURATION = "^[+]?(?:0|(?:(?:\\d+(?:\\.\\d*)?|\\.\\d+)" +
  "(?:ns|us|µs|μs|ms|s|m|h))+)$";

/** The whole schema of a document. */
export function documentSchema(
  title: string,
  description: string,
  shape: JsonSchema,
): JsonSchema {
  return { $schema: DIALECT, title, description, ...shape };
}

/** The schema of a shape. */
export function schemaOf(shape: Shape): JsonSchema {
  switch (shape.kind) {
    case "text":
      return {
        type: "string",
        ...(shape.pattern === undefined
          ? {}
          : { pattern: shape.pattern.source }),
      };
    case "word":
      return { enum: shape.words };
    case "number":
      return { type: "integer", minimum: shape.least, maximum: shape.most };
    case "boolean":
      return { type: "boolean" };
    case "duration":
      return { type: "string", pattern: DURATION };
    case "list":
      return {
        type: "array",
        items: schemaOf(shape.of),
        ...(shape.least === undefined ? {} : { minItems: shape.least }),
        ...(shape.most === undefined ? {} : { maxItems: shape.most }),
      };
    case "map":
      return mapSchema(shape);
    case "names":
      return { type: "object", additionalProperties: schemaOf(shape.of) };
    case "either":
      return { anyOf: shape.of.map(schemaOf) };
  }
}

function mapSchema(shape: MapShape): JsonSchema {
  const { fields, required, someOf, oneOf, isStrict, isOpen } = shape;
  const having = (names: readonly string[]) =>
    names.map((name) => ({ required: [name] }));
  return {
    type: "object",
    properties: Object.fromEntries(
      Object.entries(fields).map(([name, field]) => [
        name,
        isStrict ? notEmpty(schemaOf(field)) : orNothing(schemaOf(field)),
      ]),
    ),
    ...(isOpen ? {} : { additionalProperties: false }),
    ...(required === undefined ? {} : { required }),
    ...(someOf === undefined
      ? {}
      : { allOf: someOf.map((names) => ({ anyOf: having(names) })) }),
    ...(oneOf === undefined ? {} : { oneOf: having(oneOf) }),
  };
}

/** `key:` alone counts as absent. */
function orNothing(schema: JsonSchema): JsonSchema {
  return { anyOf: [schema, { type: "null" }] };
}

function notEmpty(schema: JsonSchema): JsonSchema {
  if (schema["type"] === "string") return { minLength: 1, ...schema };
  const items = schema["items"] as JsonSchema | undefined;
  return schema["type"] === "array" && items?.["type"] === "string"
    ? { ...schema, items: { minLength: 1, ...items } }
    : schema;
}
