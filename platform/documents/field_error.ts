/**
 * What is wrong in one place of a document; of the place, `yaml.ts` makes a line.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { clipped } from "../../proto/peer/quoted.ts";

/** The path of a place: `["services", 2, "ports"]`. */
export type DocumentPath = readonly (string | number)[];

/** An error in one place. */
export class FieldError extends Error {
  override readonly name = "FieldError";
  readonly tunnelCode: Code = "TUN124";

  constructor(readonly place: DocumentPath, readonly problem: string) {
    super(`${pathText(place) || "the document"}: ${problem}`);
  }
}

/** The kind of a value, for a sentence. */
export function kindOfValue(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "a map" : `a ${typeof value}`;
}

/** `services[2].ports`; empty for the whole document. */
export function pathText(place: DocumentPath): string {
  return place.map((part) =>
    typeof part === "number" ? `[${part}]` : `.${clipped(part)}`
  )
    .join("").replace(/^\./, "");
}
