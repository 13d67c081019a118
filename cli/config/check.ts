/**
 * `tunnel config check`: all that is wrong with files, each with its place.
 *
 * @module
 */

import {
  DocumentError,
  parseFile,
  parseYamlOrJson,
} from "../../platform/documents/document.ts";
import { positionOf } from "../../platform/documents/line_finder.ts";
import type { CommandContext } from "../program/command.ts";
import { textOf, UsageError } from "../flags/usage_error.ts";
import { type ConfigKind, documentKindOf } from "./kinds.ts";

/** What is wrong in one place of a file. */
export interface ConfigProblem {
  readonly file: string;
  /** Counted from 1; absent: nobody knows. */
  readonly line?: number;
  readonly column?: number;
  readonly message: string;
}

/** What was found out about a file. */
export interface CheckedFile {
  readonly file: string;
  /** Absent: it could not be read so far. */
  readonly kind?: string;
  readonly problems: readonly ConfigProblem[];
}

/** A longer one is no configuration, but for services. */
const BYTES_MAX = 64 * 1024 * 1024;

/**
 * Checks a file.
 *
 * @param kind Absent: it is found out.
 * @param context Its words are flags beside a file of flags.
 * @throws {UsageError} When it cannot be read, or nobody knows what it is.
 */
export function checkFile(
  file: string,
  kinds: readonly ConfigKind[],
  kind: ConfigKind | undefined,
  { readFile, argv }: Pick<CommandContext, "readFile" | "argv">,
): CheckedFile {
  const text = readText(file, readFile);
  let document: unknown;
  try {
    document = /\.(?:json|ya?ml)$/.test(file)
      ? parseFile(file, text)
      : parseYamlOrJson(text);
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    return { file, problems: [unreadable(file, error.message)] };
  }
  const found = kind ?? documentKindOf(kinds, document, file);
  if (found === undefined) {
    const names = kinds.filter(({ isRare }) => !isRare)
      .map(({ name }) => name).join(", ");
    throw new UsageError(
      `Cannot tell what ${file} is; say it by --kind (${names}; \`tunnel ` +
        "config schema` has all)",
    );
  }
  const problems = found.problems(document, text, argv).map(
    ({ place, message }): ConfigProblem => ({
      file,
      ...positionOf(text, place),
      message,
    }),
  );
  problems.sort((a, b) => a.line! - b.line! || a.column! - b.column!);
  return { file, kind: found.name, problems };
}

/** `FILE:LINE:COLUMN: what was seen`, as editors read it. */
export function problemLine(
  { file, line, column, message }: ConfigProblem,
): string {
  const at = line === undefined ? file : `${file}:${line}:${column ?? 1}`;
  return `${at}: ${message}`;
}

function readText(path: string, readFile: (path: string) => string): string {
  const text = textOf(`Cannot read ${path}`, path, readFile);
  if (text.length <= BYTES_MAX) return text;
  throw new UsageError(
    `Cannot check ${path}: it is longer than ${BYTES_MAX} bytes`,
    "TUN114",
  );
}

/** Both parsers say where they stopped, at the end of their sentence. */
function unreadable(file: string, message: string): ConfigProblem {
  const match = /\bline (\d+),? column (\d+)/.exec(message);
  return {
    file,
    ...(match === null
      ? {}
      : { line: Number(match[1]), column: Number(match[2]) }),
    message,
  };
}
