/**
 * Reads the text of a document, in YAML or in JSON, and turns each error into a
 * sentence with a line number.
 *
 * @module
 */

import type { Code } from "../../proto/codes/codes.ts";
import { FieldError } from "./field_error.ts";
import { parse, positionsIn } from "./yaml.ts";

/** A text that cannot be read; the message is a clause such as `it is not …`. */
export class DocumentError extends Error {
  override readonly name = "DocumentError";
  readonly tunnelCode: Code = "TUN124";
}

/**
 * Reads YAML, of which JSON is a part.
 *
 * @throws {DocumentError}
 */
export function parseYaml(text: string): unknown {
  return parsed("not YAML", text, parse);
}

/** @throws {DocumentError} */
export function parseJson(text: string): unknown {
  return parsed("not JSON", text, JSON.parse);
}

/**
 * Reads either, JSON many times as fast as YAML.
 *
 * @throws {DocumentError}
 */
export function parseYamlOrJson(text: string): unknown {
  if (/^\s*\{/.test(text)) {
    try {
      return JSON.parse(text);
    } catch {
      // Either flow-style YAML, or the error comes below, with its line.
    }
  }
  return parsed("neither YAML nor JSON", text, parse);
}

function parsed(
  kind: string,
  text: string,
  parse: (text: string) => unknown,
): unknown {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new DocumentError(`it is ${kind}: ${problemOf(error)}`);
  }
}

/**
 * Reads a file by the ending of its name.
 *
 * @throws {DocumentError}
 */
export function parseFile(path: string, text: string): unknown {
  if (path.endsWith(".json")) return parseJson(text);
  if (/\.ya?ml$/.test(path)) return parseYaml(text);
  throw new DocumentError("its name ends in neither .json nor .yaml");
}

/**
 * What is wrong with a document, such as `line 7: services[0].port: there is no
 * such field …`.
 *
 * @throws `error`, when it is about something else.
 */
export function problemIn(text: string, error: unknown): string {
  if (error instanceof DocumentError) return error.message;
  if (!(error instanceof FieldError)) throw error;
  return `line ${positionsIn(text)(error.place).line}: ${error.message}`;
}

function problemOf({ message }: SyntaxError): string {
  // `socket: *` is the beginning of an alias.
  return /\balias\b/.test(message)
    ? `${message}; an asterisk stands in quotes: "*"`
    : message;
}
