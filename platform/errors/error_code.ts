/**
 * The code and the message of an error, whatever was thrown.
 *
 * @module
 */

/** The `E…` code of a system error; empty when there is none. */
export function codeOf(error: unknown): string {
  if (typeof error !== "object" || error === null) return "";
  const code = (error as { code?: unknown }).code;
  return typeof code === "string" ? code : "";
}

/** What went wrong, in its own words. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
