/**
 * What can be wrong on the way to a server, by stable code, and what mends it.
 *
 * @module
 */

import type { Code } from "../../../proto/codes/codes.ts";
import type { Finding } from "./path_walk.ts";

/** A fault, or something odd. */
export function failed(
  code: Code,
  message: string,
  remedy: string,
): Finding {
  return { outcome: "failed", code, message, remedy };
}

/** Something odd that does not stop anything. */
export function warned(
  code: Code,
  message: string,
  remedy: string,
): Finding {
  return { outcome: "warning", code, message, remedy };
}

/** As it should be. */
export function fine(message: string): Finding {
  return { outcome: "ok", message };
}

/** Nothing could be said about it. */
export function skipped(message: string): Finding {
  return { outcome: "skipped", message };
}
