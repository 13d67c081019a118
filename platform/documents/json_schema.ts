/**
 * JSON Schema (draft 2020-12), by which editors check documents. The schema of a
 * shape stands beside how it is read (`shape.ts`).
 *
 * @module
 */

/** A schema; what it may hold is the specification's to say. */
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
