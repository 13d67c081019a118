/**
 * The version of this program and its platform, and `--version`, as in every
 * program of Kubernetes: print it and end. It is not in a table of flags,
 * because then `$TUNNEL_VERSION`, which many images set, and a line in a config
 * file would end the program as well.
 *
 * @module
 */

import { parseGoBool } from "../flags/go_values.ts";
import { unusable } from "../flags/usage_error.ts";
import { VERSION } from "../../platform/process/version.ts";

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

/** What the command line asks for. */
export interface VersionRequest {
  /** Absent: it does not ask for the version. */
  readonly form?: "text" | "json";
  /** The words without it. */
  readonly argv: readonly string[];
}

/**
 * Takes `--version`, `-version`, `--version=false` and `--version=raw` out of a
 * command's words; the last one counts.
 *
 * @throws {UsageError} For another value.
 */
export function takeVersion(argv: readonly string[]): VersionRequest {
  const dashes = argv.indexOf("--");
  const end = dashes < 0 ? argv.length : dashes;
  const words = argv.slice(0, end);
  const asked = words.filter((word) => FLAG.test(word)).at(-1);
  if (asked === undefined) return { argv };
  const rest = [
    ...words.filter((word) => !FLAG.test(word)),
    ...argv.slice(end),
  ];
  const text = FLAG.exec(asked)![1] ?? "true";
  if (text === "raw") return { form: "json", argv: rest };
  const isWanted = parseGoBool(text);
  if (isWanted === undefined) {
    throw unusable("--version", text, "true, false or raw");
  }
  return isWanted ? { form: "text", argv: rest } : { argv: rest };
}

const FLAG = /^--?version(?:=(.*))?$/s;
