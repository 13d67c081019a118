/**
 * What is wrong with a YAML text, for whoever wrote it.
 *
 * @module
 */

/** @param error What the parser threw; its first line says enough. */
export function yamlProblem(error: Error): string {
  const line = error.message.split("\n")[0]!.trim().replace(/:$/, "");
  // `socket: *` is the beginning of an alias.
  return /\balias\b/.test(line)
    ? `${line}; an asterisk stands in quotes: "*"`
    : line;
}
