/**
 * JSON Schema (draft 2020-12), with which editors check documents. The schema
 * of a shape is beside its reader (`shape.ts`).
 *
 * @module
 */

/** A schema; the specification defines its content. */
export type JsonSchema = Readonly<Record<string, unknown>>;

const DIALECT = "https://json-schema.org/draft/2020-12/schema";

/** The whole schema of a document. */
export function documentSchema(
  title: string,
  description: string,
  shape: JsonSchema,
): JsonSchema {
  return { $schema: DIALECT, title, description, ...shape };
}
