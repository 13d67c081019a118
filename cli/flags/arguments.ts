/**
 * Command-line words to texts per flag, with Go's rules for what belongs to
 * what. It knows names and kinds; the meaning of a text is decided elsewhere.
 *
 * Parsers of other languages guess where Go does not: a value that begins with
 * `-`, a boolean followed by a word.
 *
 * @module
 */

import { UsageError } from "./usage_error.ts";
import { type Flag, type FlagTable, FlagValueError } from "./flag.ts";
import { didYouMean } from "../../platform/text/nearest.ts";

/** A flag of every command, in no table: see `takeVersion`. */
const EVERYWHERE = ["version"] as const;

/** What the words were. */
export interface Arguments {
  /** Texts per flag, in order; flags that were not given are absent. */
  readonly texts: ReadonlyMap<string, readonly string[]>;
  /** Words that belong to no flag. */
  readonly operands: readonly string[];
}

/**
 * Sorts `argv`.
 *
 * @param command For messages, such as `server`.
 * @throws {UsageError} For an unknown flag or a flag without its value.
 */
export function sortArguments(
  command: string,
  table: FlagTable,
  argv: readonly string[],
): Arguments {
  const names = canonicalNames(table);
  const texts = new Map<string, readonly string[]>();
  const operands: string[] = [];
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at]!;
    if (word === "--") {
      operands.push(...argv.slice(at + 1));
      break;
    }
    if (!word.startsWith("-") || word === "-") {
      operands.push(word);
      continue;
    }
    const { name, text } = splitWord(command, table, names, word);
    const { kind, placeholder } = table[name]!;
    // Like Go, takes the next word, whatever it looks like.
    const value = text ?? (kind === "boolean" ? "true" : argv[++at]);
    if (value === undefined) {
      throw new UsageError(
        `Cannot read ${word}: its value is missing; write ` +
          `${word}=${placeholder}`,
      );
    }
    texts.set(name, [...texts.get(name) ?? [], value]);
  }
  return { texts, operands };
}

/** Every accepted spelling (without dashes) and the table's name for it. */
export function canonicalNames(table: FlagTable): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const [name, flag] of Object.entries(table)) {
    names.set(name, name);
    for (const alias of flag.aliases ?? []) names.set(alias, name);
  }
  return names;
}

/** `; did you mean --x?` or nothing. */
function suggestion(seen: string, names: readonly string[]): string {
  const bare = (name: string) => name.replace("server-", "");
  // Of an agent it is --health-server-port, of a server --health-port.
  const near = names.find((name) => bare(name) === bare(seen));
  return didYouMean(near ?? seen, names, "--");
}

function splitWord(
  command: string,
  table: FlagTable,
  names: ReadonlyMap<string, string>,
  word: string,
): { name: string; text: string | undefined } {
  const equals = word.indexOf("=");
  const head = equals < 0 ? word : word.slice(0, equals);
  const text = equals < 0 ? undefined : word.slice(equals + 1);
  const seen = head.replace(/^--?/, "").replaceAll("_", "-");
  // Go's flag package, and so kube-proxy 0.4 and klog, asks for one dash only.
  const name = names.get(seen);
  if (name !== undefined) return { name, text };
  const hint = suggestion(seen, [...names.keys(), ...EVERYWHERE]);
  if (!head.startsWith("--")) {
    const short = shortFlag(table, head[1]!);
    // `-v4` and `-v=4` both; Go has no bundles of flags with values.
    if (short !== undefined && head.length === 2) return { name: short, text };
    const rest = word.slice(2);
    const isMeant = short !== undefined && table[short]!.kind !== "boolean" &&
      (isValue(table[short]!, rest) || hint === "");
    if (isMeant) return { name: short, text: rest };
  }
  throw new UsageError(
    `Unknown flag ${head}${hint} (tunnel help ${command} lists all flags)`,
  );
}

/**
 * Whether `-v…` can be that letter with its value, and not a misspelled name.
 */
function isValue(flag: Flag<unknown>, text: string): boolean {
  try {
    flag.parse(text);
    return true;
  } catch (error) {
    if (error instanceof FlagValueError) return false;
    throw error;
  }
}

function shortFlag(table: FlagTable, letter: string): string | undefined {
  return Object.entries(table).find(([name, flag]) =>
    flag.short === letter || name === letter
  )?.[0];
}
