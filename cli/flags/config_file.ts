/**
 * `--config`: flags written down in a file, under the same names.
 *
 * The file is one flat map; lists may be real lists. What a value means is
 * decided where command-line values are decided too.
 *
 * @module
 */

import { DocumentError, parseFile } from "../../platform/documents/document.ts";
import { UsageError } from "./usage_error.ts";
import { canonicalNames, suggestion } from "./arguments.ts";
import type { FlagTable } from "./flag.ts";

/** A config file names sockets and files; a megabyte of it is a mistake. */
export const CONFIG_BYTES_MAX = 1024 * 1024;

/**
 * Reads the text of a config file.
 *
 * @param path For messages; its ending (`.json`, `.yaml`, `.yml`) says the form.
 * @returns Texts per flag, as `sortArguments` gives them.
 * @throws {UsageError} With the file's name in front.
 */
export function readConfig(
  table: FlagTable,
  path: string,
  content: string,
): ReadonlyMap<string, readonly string[]> {
  if (content.length > CONFIG_BYTES_MAX) {
    throw refusal(path, `it is longer than ${CONFIG_BYTES_MAX} bytes`);
  }
  const names = canonicalNames(table);
  const texts = new Map<string, readonly string[]>();
  for (const [key, value] of Object.entries(parseMap(path, content))) {
    const name = names.get(key.replaceAll("_", "-"));
    if (name === undefined || name === "config") {
      throw refusal(path, `unknown key "${key}"${suggestion(key, names, "")}`);
    }
    if (texts.has(name)) {
      throw refusal(path, `"${key}" is given twice; keep one of them`);
    }
    if (value !== null) texts.set(name, asTexts(path, key, value));
  }
  return texts;
}

function parseMap(path: string, content: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = parseFile(path, content);
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    throw refusal(path, error.message);
  }
  // An empty file, or one that is all comments, sets nothing.
  if (value === null || value === undefined) return {};
  if (typeof value !== "object" || Array.isArray(value)) {
    throw refusal(path, "it must be a map of flag names to values");
  }
  return value as Record<string, unknown>;
}

function asTexts(path: string, key: string, value: unknown): string[] {
  if (Array.isArray(value)) {
    if (value.length === 0) return ["[]"];
    return value.flatMap((item) => asTexts(path, key, item));
  }
  if (["string", "number", "boolean"].includes(typeof value)) {
    return [String(value)];
  }
  throw refusal(path, `"${key}" must be a text, a number, a boolean or a list`);
}

function refusal(path: string, problem: string): UsageError {
  return new UsageError(`Cannot use --config ${path}: ${problem}`);
}
