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

/** A flag of which nothing else is told is given its help alone. */
type Details = FlagDetails | string;

/** All kinds of flags: `flag.count(5, 1, 1000, { help })`. */
export const flag = {
  /** Free text. */
  text(fallback: string, details: Details): Flag<string> {
    return make("TEXT", fallback, details, (text) => text);
  },

  /** Free text, none unless it is given; `what` is its name in the help. */
  word(what: string, details: Details): Flag<string> {
    return make(what, "", details, (text) => text);
  },

  /** A path of a file. */
  file(details: Details): Flag<string> {
    return flag.word("FILE", details);
  },

  /** The address that a port is opened on. */
  bind(help: string, fallback = ""): Flag<string> {
    const defaultText = fallback === "" ? "all interfaces" : fallback;
    return flag.text(fallback, { placeholder: "ADDRESS", help, defaultText });
  },

  /** `--x`, `--x=false`. */
  boolean(fallback: boolean, details: Details): Flag<boolean> {
    const parse = (text: string) =>
      orRefuse(parseGoBool(text), "true or false");
    return { ...make("", fallback, details, parse), kind: "boolean" };
  },

  /** 0 to 65535; upstream's 1024..49151 is not enforced. */
  port(fallback: number, details: Details): Flag<number> {
    const wanted = "a port (0 to 65535)";
    return whole("PORT", fallback, 0, 65_535, wanted, details);
  },

  /** A whole number between `min` and `max`, both included. */
  count(
    fallback: number,
    min: number,
    max: number,
    details: Details,
  ): Flag<number> {
    const wanted = `a whole number from ${min} to ${max}`;
    return whole("N", fallback, min, max, wanted, details);
  },

  /** A number with or without a fraction, not negative. */
  number(fallback: number, details: Details): Flag<number> {
    return make("N", fallback, details, (text) => {
      const value = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : undefined;
      return orRefuse(value, "a number such as 5 or 2.5");
    });
  },

  /** A waiting time in milliseconds, written as Go writes durations. */
  duration(
    fallbackMs: number,
    minMs: number,
    details: Details,
    maxMs: number = DURATION_MS_MAX,
  ): Flag<number> {
    const wanted = `a duration such as 24h, 5m, 1.5s or 100ms, from ${
      formatGoDuration(minMs)
    } to ${formatGoDuration(maxMs)}`;
    const parse = (text: string) =>
      orRefuse(inRange(parseGoDuration(text), minMs, maxMs), wanted);
    return make("DURATION", fallbackMs, details, parse, formatGoDuration);
  },

  /** Like `duration`, for a validity: no timer runs for it. */
  life(fallbackMs: number, minMs: number, details: Details): Flag<number> {
    return flag.duration(fallbackMs, minMs, details, LIFE_MS_MAX);
  },

  /** A count of bytes, such as `4194304` or `4MiB`. */
  bytes(
    fallback: number,
    min: number,
    max: number,
    details: Details,
  ): Flag<number> {
    const wanted = `a size such as 4MiB, from ${formatBytes(min)} to ${
      formatBytes(max)
    }`;
    const parse = (text: string) =>
      orRefuse(inRange(parseBytes(text), min, max), wanted);
    return make("SIZE", fallback, details, parse, formatBytes);
  },

  /** One of `choices`, exactly as written. */
  choice<const C extends string>(
    choices: readonly C[],
    fallback: C,
    details: Details,
  ): Flag<C> {
    const placeholder = choices.filter((choice) => choice !== "").join("|");
    const parse = (text: string) =>
      oneOf(choices, text, `one of ${named(choices)}`);
    return { ...make(placeholder, fallback, details, parse), choices };
  },

  /** Texts, separated by commas, in as many occurrences as one likes. */
  list(
    fallback: readonly string[],
    details: Details,
  ): Flag<readonly string[]> {
    return { ...make("LIST", fallback, details, splitList), kind: "list" };
  },

  /** A list of which every item is one of `choices`. */
  choices<const C extends string>(
    choices: readonly C[],
    fallback: readonly C[],
    details: Details,
  ): Flag<readonly C[]> {
    const parse = (text: string) =>
      splitList(text)
        .map((item) => oneOf(choices, item, `names out of ${named(choices)}`));
    const listed = make("LIST", fallback, details, parse);
    return { ...listed, kind: "list", choices };
  },

  /** A list of which each text gives some items. */
  parsedList<V>(
    parse: (text: string) => readonly V[],
    details: Details,
  ): Flag<readonly V[]> {
    const listed = make<readonly V[]>("LIST", [], details, parse, () => "none");
    return { ...listed, kind: "list" };
  },

  /** Text that `parse` turns into a value; it throws {@linkcode FlagValueError}. */
  parsed<V>(
    fallback: V,
    parse: (text: string) => V,
    details: Details,
  ): Flag<V> {
    return make("TEXT", fallback, details, parse, () => "");
  },
} as const;

function make<V>(
  placeholder: string,
  fallback: V,
  details: Details,
  parse: (text: string) => V,
  format: (value: V) => string = String,
): Flag<V> {
  return {
    placeholder,
    defaultText: format(fallback),
    status: { kind: "works" },
    group: "",
    ...(typeof details === "string" ? { help: details } : details),
    kind: "scalar",
    fallback,
    parse,
  };
}

function whole(
  placeholder: string,
  fallback: number,
  least: number,
  most: number,
  wanted: string,
  details: Details,
): Flag<number> {
  const parse = (text: string) =>
    orRefuse(inRange(parseWholeNumber(text), least, most), wanted);
  const made = make(placeholder, fallback, details, parse);
  return { ...made, range: { least, most } };
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

function oneOf<C extends string>(
  choices: readonly C[],
  text: string,
  wanted: string,
): C {
  return orRefuse(choices.find((choice) => choice === text), wanted);
}

function named(choices: readonly string[]): string {
  return choices.map((choice) => choice === "" ? '""' : choice).join(", ");
}

/** Go prints an empty list as `[]`, and so it comes in from Go's own tools. */
function splitList(text: string): readonly string[] {
  const inner = text.startsWith("[") && text.endsWith("]")
    ? text.slice(1, -1)
    : text;
  return inner.split(",").map((item) => item.trim()).filter((item) => item);
}
