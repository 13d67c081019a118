/**
 * Command-line words to texts per flag, with Go's rules for what belongs to
 * what. It knows names and kinds; the meaning of a text is decided elsewhere.
 *
 * `@std/cli` does the parsing proper. It guesses where Go does not (a value
 * that begins with `-`, a boolean followed by a word), so the words are first
 * rewritten to the form that both read alike: `--name=value`.
 *
 * @module
 */

import { parseArgs } from "@std/cli";
import { UsageError } from "./usage_error.ts";
import { type Flag, type FlagTable, FlagValueError } from "./flag.ts";
import { didYouMean } from "../../platform/text/nearest.ts";

/** A flag of every command, in no table: see `takeVersion`. */
const EVERYWHERE = [["version", "version"]] as const;

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
  const words = respell(command, table, names, argv);
  const flags = Object.keys(table);
  const parsed = parseArgs(words, {
    string: [...flags, "_"],
    collect: flags,
    "--": true,
  });

  const texts = new Map<string, readonly string[]>();
  for (const name of flags) {
    const given = parsed[name];
    if (Array.isArray(given) && given.length > 0) texts.set(name, given);
  }
  const behindDashes = parsed["--"] as readonly string[] | undefined;
  return {
    texts,
    operands: [...parsed._, ...(behindDashes ?? [])].map(String),
  };
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

function respell(
  command: string,
  table: FlagTable,
  names: ReadonlyMap<string, string>,
  argv: readonly string[],
): string[] {
  const words: string[] = [];
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at]!;
    if (word === "--") return [...words, ...argv.slice(at)];
    if (!word.startsWith("-") || word === "-") {
      words.push(word);
      continue;
    }
    const { name, text } = splitWord(command, table, names, word);
    if (text !== undefined) {
      words.push(`--${name}=${text}`);
    } else if (table[name]!.kind === "boolean") {
      words.push(`--${name}=true`);
    } else if (at + 1 < argv.length) {
      // Like Go, takes the next word, whatever it looks like.
      words.push(`--${name}=${argv[++at]}`);
    } else {
      throw new UsageError(
        `Cannot read ${word}: its value is missing; write ` +
          `${word}=${table[name]!.placeholder}`,
      );
    }
  }
  return words;
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
  const hint = suggestion(
    seen,
    [...new Map([...names, ...EVERYWHERE]).keys()],
  );
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
