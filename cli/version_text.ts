/**
 * Which program this is and what it runs on, as text.
 *
 * @module
 */

import { VERSION } from "../platform/process/version.ts";

/** For people or for machines; ends with a newline. */
export function versionText(form: "text" | "json"): string {
  const versions = {
    tunnel: VERSION,
    ...Deno.version,
    target: Deno.build.target,
  };
  if (form === "json") return `${JSON.stringify(versions)}\n`;
  return Object.entries(versions)
    .map(([name, value]) => `${name} ${value}\n`).join("");
}
