/**
 * Where a flag's value comes from: command line, environment, config file,
 * default, in this order. An empty value counts as not given, because manifests
 * pass every flag of Konnectivity.
 *
 * @module
 */

import { tunnelCodeOf } from "../../proto/codes/codes.ts";
import { kindOfValue } from "../../platform/documents/field_error.ts";
import { clipped } from "../../proto/peer/quoted.ts";
import { textOf, UsageError } from "./usage_error.ts";
import { type Arguments, canonicalNames, sortArguments } from "./arguments.ts";
import { didYouMean } from "../../platform/text/nearest.ts";
import {
  type Flag,
  type FlagTable,
  FlagValueError,
  type FlagValues,
} from "./flag.ts";
import { DocumentError, parseFile } from "../../platform/documents/document.ts";

/** The machine, as far as flags need it. */
export interface FlagSources {
  readonly argv: readonly string[];
  /** One environment variable. */
  readonly environment: (name: string) => string | undefined;
  /** A file's text; throws when it cannot be read. */
  readonly readFile: (path: string) => string;
}

/** What flags say. */
export interface GivenValues<Values> {
  readonly values: Values;
  /** Flags whose value came from somewhere else than the default. */
  readonly given: ReadonlySet<string>;
}

/** What was read. */
export interface FlagReading<T extends FlagTable>
  extends GivenValues<FlagValues<T>> {
  /** Of each of those, where it came from: `--x`, `$TUNNEL_X`, `"x" in FILE`. */
  readonly origins: ReadonlyMap<string, string>;
  /** Words that belong to no flag. */
  readonly operands: readonly string[];
  /** Sentences for the log: flags that were accepted and have no effect. */
  readonly notices: readonly string[];
}

/** Kubernetes puts `TUNNEL_SERVER_PORT=tcp://…` beside a Service `tunnel-server`. */
const SERVICE_LINK = /^(?:tcp|udp|sctp):\/\//;

/**
 * Reads all flags of a command.
 *
 * @param command For messages, such as `server`.
 * @throws {UsageError} One line, for the first thing that cannot be used.
 */
export function readFlags<T extends FlagTable>(
  command: string,
  table: T,
  sources: FlagSources,
): FlagReading<T> {
  const words = sortArguments(command, table, sources.argv);
  const config = configTexts(table, words, sources);
  const values: Record<string, unknown> = {};
  const origins = new Map<string, string>();
  const notices: string[] = [];
  for (const [name, flag] of Object.entries(table)) {
    const found = findTexts(name, flag, words, sources, config);
    const tolerable = isOurs(flag, sources.argv)
      ? found
      : tolerated(flag, found, notices);
    const value = tolerable === undefined
      ? flag.fallback
      : readTexts(flag, tolerable);
    // deno-lint-ignore tunnel/own-keys -- a flag of our own table.
    values[name] = value;
    if (found === undefined) continue;
    origins.set(name, found.origin);
    if (isSame(value, flag.fallback) || flag.status.kind === "works") continue;
    if (flag.status.kind === "missing") {
      throw new UsageError(
        `Cannot use ${found.origin}: ${flag.status.because}; remove it`,
      );
    }
    notices.push(`${found.origin} has no effect: ${flag.status.because}`);
  }
  for (const [name, { means }] of Object.entries(table)) {
    // deno-lint-ignore tunnel/own-keys -- a flag of our own table.
    if (means === undefined || values[name] !== true) continue;
    // deno-lint-ignore tunnel/own-keys -- the same.
    if (Object.hasOwn(table, means.flag)) values[means.flag] = means.value;
  }
  return {
    values: values as FlagValues<T>,
    given: new Set(origins.keys()),
    origins,
    operands: words.operands,
    notices,
  };
}

/** The environment variable of a flag. */
export function environmentName(flag: string): string {
  return `TUNNEL_${flag.toUpperCase().replaceAll("-", "_")}`;
}

interface Found {
  readonly texts: readonly string[];
  /** In the form that the user wrote: `--x`, `$TUNNEL_X`, `"x" in file`. */
  readonly origin: string;
}

function findTexts(
  name: string,
  flag: Flag<unknown>,
  words: Arguments,
  sources: FlagSources,
  config: { path: string; texts: ReadonlyMap<string, readonly string[]> },
): Found | undefined {
  const onLine = words.texts.get(name)?.filter((text) => text !== "");
  if (onLine !== undefined && onLine.length > 0) {
    if (flag.once === true && new Set(onLine).size > 1) {
      throw new UsageError(
        `Cannot use --${name} twice: saw ${onLine.join(" and ")}; keep one`,
      );
    }
    return { texts: onLine, origin: `--${name}` };
  }
  const variables = [environmentName(name), ...(flag.environment ?? [])];
  for (const variable of variables) {
    const text = sources.environment(variable) ?? "";
    if (text === "" || SERVICE_LINK.test(text)) continue;
    return { texts: [text], origin: `$${variable}` };
  }
  const inFile = config.texts.get(name)?.filter((text) => text !== "");
  if (inFile !== undefined && inFile.length > 0) {
    return { texts: inFile, origin: `"${name}" in ${config.path}` };
  }
  return undefined;
}

/** Limit on a notice, because it repeats typed text. */
const NOTICE_LENGTH_MAX = 500;

/** One of its other names is on the command line. */
function isOurs({ aliases = [] }: Flag<unknown>, argv: readonly string[]) {
  return aliases.some((alias) =>
    argv.some((word) => word.split("=")[0] === `--${alias}`)
  );
}

function tolerated(
  { tolerates }: Flag<unknown>,
  found: Found | undefined,
  notices: string[],
): Found | undefined {
  if (found === undefined || tolerates === undefined) return found;
  const texts = found.texts.map((text) => {
    const instead = tolerates(text);
    if (instead === undefined) return text;
    notices.push(
      `${found.origin}: ${clipped(instead.notice, NOTICE_LENGTH_MAX)}`,
    );
    return instead.text;
  });
  return { ...found, texts };
}

function readTexts<V>(flag: Flag<V>, { texts, origin }: Found): V {
  // A list adds up over its occurrences; of anything else the last one counts.
  if (flag.kind === "list") {
    const items = texts.flatMap((text) =>
      readText(flag, text, origin) as unknown as readonly unknown[]
    );
    return items as unknown as V;
  }
  return readText(flag, texts.at(-1)!, origin);
}

function readText<V>(flag: Flag<V>, text: string, origin: string): V {
  try {
    return flag.parse(text);
  } catch (error) {
    const problem = valueProblem(error, text);
    throw new UsageError(
      `Cannot use ${origin}: ${problem}`,
      tunnelCodeOf(error),
    );
  }
}

/** Why `text` is no value, behind its flag. @throws Another error than that. */
export function valueProblem(error: unknown, text: string): string {
  if (!(error instanceof FlagValueError)) throw error;
  const seen = error.quotes ? "" : `saw "${clipped(text)}", `;
  return seen + error.message;
}

function configTexts(
  table: FlagTable,
  words: Arguments,
  sources: FlagSources,
): { path: string; texts: ReadonlyMap<string, readonly string[]> } {
  const path = words.texts.get("config")?.at(-1) ||
    sources.environment(environmentName("config")) || "";
  if (path === "" || !table["config"]?.holdsFlags) {
    return { path, texts: new Map() };
  }
  const what = `Cannot use --config ${path}`;
  const content = textOf(what, path, sources.readFile);
  return { path, texts: readConfig(table, path, content) };
}

function isSame(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/** A config file names sockets and files; a megabyte of it is a mistake. */
const CONFIG_BYTES_MAX = 1024 * 1024;

/**
 * Reads the text of a config file: flags under the same names. It is one flat
 * map; lists may be real lists. What a value means is decided where
 * command-line values are decided too.
 *
 * @param path For messages; its ending (`.json`, `.yaml`, `.yml`) says the form.
 * @returns Texts per flag, as `sortArguments` gives them.
 * @throws {UsageError} With the file's name in front.
 */
function readConfig(
  table: FlagTable,
  path: string,
  content: string,
): ReadonlyMap<string, readonly string[]> {
  if (content.length > CONFIG_BYTES_MAX) {
    throw configRefusal(path, `it is longer than ${CONFIG_BYTES_MAX} bytes`);
  }
  let value: unknown;
  try {
    value = parseFile(path, content);
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    throw configRefusal(path, error.message);
  }
  const texts = new Map<string, readonly string[]>();
  for (const entry of flagEntries(table, value)) {
    if ("problem" in entry) {
      const where = entry.key === undefined ? "" : `"${entry.key}": `;
      throw configRefusal(path, where + entry.problem);
    }
    texts.set(entry.name, entry.texts);
  }
  return texts;
}

/** A key of a map of flags: its value, or its error. */
export type FlagEntry =
  | {
    readonly key: string;
    readonly name: string;
    readonly texts: readonly string[];
  }
  /** Without a key it is the map that is wrong. */
  | { readonly key?: string; readonly problem: string };

/** Nothing, as in a file that is all comments, sets nothing. */
export function* flagEntries(
  table: FlagTable,
  map: unknown,
): Iterable<FlagEntry> {
  if (map === null || map === undefined) return;
  if (typeof map !== "object" || Array.isArray(map)) {
    const seen = kindOfValue(map);
    return yield {
      problem: `saw ${seen}, wanted a map of flag names to values`,
    };
  }
  const names = canonicalNames(table);
  const seen = new Set<string>();
  for (const [key, value] of Object.entries(map)) {
    const name = names.get(key.replaceAll("_", "-"));
    if (name === undefined || name === "config") {
      const hint = didYouMean(key.slice(0, 100), names.keys());
      yield { key, problem: `there is no such flag${hint}` };
      continue;
    }
    const isTwice = seen.has(name);
    seen.add(name);
    if (isTwice) yield { key, problem: `--${name} is there twice; keep one` };
    else if (value !== null) yield textsIn(key, name, value);
  }
}

function textsIn(key: string, name: string, value: unknown): FlagEntry {
  const items = [value].flat(Infinity);
  const odd = items.find((item) =>
    !["string", "number", "boolean"].includes(typeof item)
  );
  if (odd !== undefined) {
    const wanted = "wanted a text, a number, a boolean or a list";
    return { key, problem: `saw ${kindOfValue(odd)}, ${wanted}` };
  }
  return { key, name, texts: items.length === 0 ? ["[]"] : items.map(String) };
}

function configRefusal(path: string, problem: string): UsageError {
  return new UsageError(`Cannot use --config ${path}: ${problem}`, "TUN124");
}
