/**
 * The code that the machine gave an error.
 *
 * @module
 */

/** The `E…` code of a system error; empty when there is none. */
export function codeOf(error: unknown): string {
  if (typeof error !== "object" || error === null) return "";
  const code = (error as { code?: unknown }).code;
  return typeof code === "string" ? code : "";
}
