/**
 * What a flag is: a name in a table, a type, a default, a group and a sentence.
 *
 * A command's flags are one object literal whose values come from the builders
 * below; everything else (parsing, environment, config files, help, the
 * documentation) is derived from it, so a flag is described exactly once.
 *
 * @module
 */

import {
  formatBytes,
  parseBytes,
  parseGoBool,
  parseWholeNumber,
} from "./go_values.ts";
import {
  formatGoDuration,
  parseGoDuration,
} from "../../platform/documents/go_duration.ts";

/**
 * How a value that differs from the default is treated.
 *
 * - `works`: it has its function.
 * - `idle`: accepted and reported once as having no effect, because the reason
 *   it existed is gone.
 * - `missing`: refused, because the function does not exist in this version. A
 *   flag that is accepted and does nothing would be a lie.
 */
export type FlagStatus =
  | { readonly kind: "works" }
  | { readonly kind: "idle"; readonly because: string }
  | { readonly kind: "missing"; readonly because: string };

/** What every builder wants to know. */
export interface FlagDetails {
  /**
   * Heading in the help; groups appear in the order of their first flag. Absent:
   * {@linkcode inGroup} says it.
   */
  readonly group?: string;
  /** One or two sentences. */
  readonly help: string;
  /** Shown in the short help of a command with many flags. */
  readonly isCommon?: true;
  /** One-letter form. */
  readonly short?: string;
  /** Other long names for the same thing. */
  readonly aliases?: readonly string[];
  /** Environment variables that are read after `TUNNEL_<NAME>`. */
  readonly environment?: readonly string[];
  readonly status?: FlagStatus;
  /** The default in words, when the value itself is not clear. */
  readonly defaultText?: string;
  /** The value's name in the help. */
  readonly placeholder?: string;
  /** Given twice, one of the two would be dropped in silence: refused. */
  readonly once?: boolean;
  /** If true, it sets another flag to this value, whatever that flag says. */
  readonly means?: { readonly flag: string; readonly value: string };
  /** The file that it names gives values to other flags. */
  readonly holdsFlags?: boolean;
  /**
   * A wrong value that a drop-in must still accept: it is read as `text`, with
   * a notice. This does not apply to our own name of the flag.
   */
  readonly tolerates?: (text: string) => Tolerated | undefined;
  /**
   * The words that a shell offers for its value, if they do not follow from the
   * rest.
   */
  readonly offers?: Offer;
}

/** A value used in place of an unusable one. */
export interface Tolerated {
  readonly text: string;
  /** Why, behind `--flag: `. */
  readonly notice: string;
}

/** What a shell can offer for a word, beside choices. */
export type Offer =
  | "files"
  | "directories"
  /** Names that a running program of ours knows. */
  | "nodes"
  | "services"
  | "connections";

/** One flag. `V` is the type of its value once read. */
export interface Flag<V> extends FlagDetails {
  readonly kind: "boolean" | "scalar" | "list";
  readonly group: string;
  readonly status: FlagStatus;
  readonly fallback: V;
  readonly placeholder: string;
  readonly defaultText: string;
  /**
   * For numbers: the range in a file of flags, where a number may stand beside
   * a text.
   */
  readonly range?: { readonly least: number; readonly most: number };
  /** All values that there are, or of which a list consists. */
  readonly choices?: readonly string[];
  /**
   * Reads one text.
   *
   * @throws {FlagValueError} Whose message goes on after "saw this, ", or stands alone.
   */
  readonly parse: (text: string) => V;
}

/** A command's flags by name. */
export type FlagTable = Readonly<Record<string, Flag<unknown>>>;

/** What reading a table's flags gives. */
export type FlagValues<T extends FlagTable> = {
  readonly [K in keyof T]: T[K] extends Flag<infer V> ? V : never;
};

/** The flag, in the short help of a command with very many flags, too. */
export function common<V>(flag: Flag<V>): Flag<V> {
  return { ...flag, isCommon: true };
}

/** Flags under one heading of the help, but for those that have one already. */
export function inGroup<T extends FlagTable>(group: string, table: T): T {
  const grouped = Object.entries(table)
    .map(([name, flag]) => [name, { ...flag, group: flag.group || group }]);
  return Object.fromEntries(grouped) as T;
}

/** Says what was wanted instead, such as `wanted a port (0 to 65535)`. */
export class FlagValueError extends Error {
  override readonly name = "FlagValueError";

  /** @param quotes The message itself quotes the value. */
  constructor(message: string, readonly quotes = false) {
    super(message);
  }
}

/** `setTimeout` takes 31 bits of milliseconds; nothing here waits longer. */
const DURATION_MS_MAX = 2 ** 31 - 1;

/** Something valid for longer would outlive the server's own authority. */
const LIFE_MS_MAX = 10 * 365 * 24 * 3_600_000;

const WORKS: FlagStatus = { kind: "works" };

/** Free text. */
function textFlag(fallback: string, details: FlagDetails): Flag<string> {
  return make("scalar", "TEXT", fallback, details, String, (text) => text);
}

/** Free text, none unless it is given; `what` is its name in the help. */
function wordFlag(what: string, details: FlagDetails): Flag<string> {
  return textFlag("", { placeholder: what, ...details });
}

/** A path of a file. */
function fileFlag(details: FlagDetails): Flag<string> {
  return make("scalar", "FILE", "", details, String, (text) => text);
}

/** The address that a port is opened on. */
function bindFlag(help: string, fallback = ""): Flag<string> {
  const flag = textFlag(fallback, { placeholder: "ADDRESS", help });
  return fallback === "" ? { ...flag, defaultText: "all interfaces" } : flag;
}

/** `--x`, `--x=false`. */
function booleanFlag(
  fallback: boolean,
  details: FlagDetails,
): Flag<boolean> {
  return make("boolean", "", fallback, details, String, (text) => {
    return orRefuse(parseGoBool(text), "true or false");
  });
}

/** 0 to 65535; upstream's 1024..49151 is not enforced. */
function portFlag(fallback: number, details: FlagDetails): Flag<number> {
  const flag = make("scalar", "PORT", fallback, details, String, (text) => {
    const port = parseWholeNumber(text);
    return orRefuse(inRange(port, 0, 65_535), "a port (0 to 65535)");
  });
  return { ...flag, range: { least: 0, most: 65_535 } };
}

/** A whole number between `min` and `max`, both included. */
function countFlag(
  fallback: number,
  min: number,
  max: number,
  details: FlagDetails,
): Flag<number> {
  const flag = make("scalar", "N", fallback, details, String, (text) => {
    const value = inRange(parseWholeNumber(text), min, max);
    return orRefuse(value, `a whole number from ${min} to ${max}`);
  });
  return { ...flag, range: { least: min, most: max } };
}

/** A number with or without a fraction, not negative. */
function numberFlag(
  fallback: number,
  details: FlagDetails,
): Flag<number> {
  return make("scalar", "N", fallback, details, String, (text) => {
    const value = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : undefined;
    return orRefuse(value, "a number such as 5 or 2.5");
  });
}

/** A waiting time in milliseconds, written as Go writes durations. */
function durationFlag(
  fallbackMs: number,
  minMs: number,
  details: FlagDetails,
): Flag<number> {
  return millisecondsFlag(fallbackMs, minMs, DURATION_MS_MAX, details);
}

/** Like `durationFlag`, for a validity: no timer runs for it. */
function lifeFlag(
  fallbackMs: number,
  minMs: number,
  details: FlagDetails,
): Flag<number> {
  return millisecondsFlag(fallbackMs, minMs, LIFE_MS_MAX, details);
}

function millisecondsFlag(
  fallbackMs: number,
  minMs: number,
  maxMs: number,
  details: FlagDetails,
): Flag<number> {
  const wanted = `a duration such as 24h, 5m, 1.5s or 100ms, from ${
    formatGoDuration(minMs)
  } to ${formatGoDuration(maxMs)}`;
  return make(
    "scalar",
    "DURATION",
    fallbackMs,
    details,
    formatGoDuration,
    (text) => orRefuse(inRange(parseGoDuration(text), minMs, maxMs), wanted),
  );
}

/** A count of bytes, such as `4194304` or `4MiB`. */
function bytesFlag(
  fallback: number,
  min: number,
  max: number,
  details: FlagDetails,
): Flag<number> {
  const wanted = `a size such as 4MiB, from ${formatBytes(min)} to ${
    formatBytes(max)
  }`;
  return make("scalar", "SIZE", fallback, details, formatBytes, (text) => {
    return orRefuse(inRange(parseBytes(text), min, max), wanted);
  });
}

/** One of `choices`, exactly as written. */
function choiceFlag<const C extends string>(
  choices: readonly C[],
  fallback: C,
  details: FlagDetails,
): Flag<C> {
  const placeholder = choices.filter((choice) => choice !== "").join("|");
  const flag = make(
    "scalar",
    placeholder,
    fallback,
    details,
    String,
    (text): C => {
      const found = choices.find((choice) => choice === text);
      return orRefuse(found, `one of ${oneOf(choices)}`);
    },
  );
  return { ...flag, choices };
}

/** Texts, separated by commas, in as many occurrences as one likes. */
function listFlag(
  fallback: readonly string[],
  details: FlagDetails,
): Flag<readonly string[]> {
  return make("list", "LIST", fallback, details, formatList, splitList);
}

/** A list of which every item is one of `choices`. */
function choicesFlag<const C extends string>(
  choices: readonly C[],
  fallback: readonly C[],
  details: FlagDetails,
): Flag<readonly C[]> {
  const parse = (text: string): readonly C[] =>
    splitList(text).map((item) => {
      const found = choices.find((choice) => choice === item);
      return orRefuse(found, `names out of ${oneOf(choices)}`);
    });
  const flag = make<readonly C[]>(
    "list",
    "LIST",
    fallback,
    details,
    formatList,
    parse,
  );
  return { ...flag, choices };
}

/** A list of which each text gives some items. */
function parsedListFlag<V>(
  parse: (text: string) => readonly V[],
  details: FlagDetails,
): Flag<readonly V[]> {
  return make<readonly V[]>(
    "list",
    "LIST",
    [],
    {
      defaultText: "none",
      ...details,
    },
    () => "",
    parse,
  );
}

/** Text that `parse` turns into a value; it throws {@linkcode FlagValueError}. */
function parsedFlag<V>(
  fallback: V,
  parse: (text: string) => V,
  details: FlagDetails,
): Flag<V> {
  return make("scalar", "TEXT", fallback, details, () => "", parse);
}

function make<V>(
  kind: Flag<V>["kind"],
  placeholder: string,
  fallback: V,
  details: FlagDetails,
  format: (value: V) => string,
  parse: (text: string) => V,
): Flag<V> {
  return {
    placeholder,
    defaultText: format(fallback),
    status: WORKS,
    group: "",
    ...details,
    kind,
    fallback,
    parse,
  };
}

function orRefuse<V>(value: V | undefined, wanted: string): V {
  if (value === undefined) throw new FlagValueError(`wanted ${wanted}`);
  return value;
}

function inRange(
  value: number | undefined,
  min: number,
  max: number,
): number | undefined {
  return value !== undefined && value >= min && value <= max
    ? value
    : undefined;
}

function oneOf(choices: readonly string[]): string {
  return choices.map((choice) => choice === "" ? '""' : choice).join(", ");
}

/** Go prints an empty list as `[]`, and so it comes in from Go's own tools. */
function splitList(text: string): readonly string[] {
  const inner = text.startsWith("[") && text.endsWith("]")
    ? text.slice(1, -1)
    : text;
  return inner.split(",").map((item) => item.trim()).filter((item) => item);
}

function formatList(items: readonly string[]): string {
  return items.join(",");
}

/** All kinds of flags: `flag.count(5, 1, 1000, { help })`. */
export const flag = {
  text: textFlag,
  word: wordFlag,
  file: fileFlag,
  bind: bindFlag,
  boolean: booleanFlag,
  port: portFlag,
  count: countFlag,
  number: numberFlag,
  duration: durationFlag,
  life: lifeFlag,
  bytes: bytesFlag,
  choice: choiceFlag,
  list: listFlag,
  choices: choicesFlag,
  parsedList: parsedListFlag,
  parsed: parsedFlag,
} as const;
