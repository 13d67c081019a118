/**
 * What may stand where on a command line, read from the tables of commands and
 * flags, for shells that complete words.
 *
 * @module
 */

import { CODES } from "../../proto/codes/codes.ts";
import type { Flag, Offer } from "../flags/flag.ts";
import type { ListedCommand } from "../program/command.ts";

/** What a shell offers for one word. */
export type WordOffer =
  /** There is no word: the flag stands alone. */
  | { readonly kind: "none" }
  /** The words cannot be known in advance. */
  | { readonly kind: "anything" }
  | { readonly kind: "choices"; readonly choices: readonly string[] }
  | { readonly kind: Offer };

/** A flag, with its dashes, and its value. */
export interface FlagWord {
  /** Without dashes. */
  readonly name: string;
  readonly short?: string | undefined;
  readonly help: string;
  readonly value: WordOffer;
}

/** A command, or a verb of one. */
export interface CommandWords {
  readonly name: string;
  readonly summary: string;
  /** Such as `list`; empty: the command has operands in their place. */
  readonly verbs: readonly {
    readonly name: string;
    readonly operand: WordOffer;
  }[];
  readonly operand: WordOffer;
  readonly flags: readonly FlagWord[];
}

const NONE: WordOffer = { kind: "none" };
const ANYTHING: WordOffer = { kind: "anything" };

/** The first sentence is enough beside a flag. */
const HELP_LENGTH_MAX = 90;

/** All commands that people use. */
export function commandWords(
  commands: readonly ListedCommand[],
): readonly CommandWords[] {
  const shown = commands.filter(({ isHidden }) => !isHidden);
  const names = [...shown.map(({ name }) => name), "help"];
  const offers = shown.map((command): CommandWords => {
    const { verbs, operand } = operandsOf(command, names);
    return {
      name: command.name,
      summary: command.summary,
      verbs,
      operand,
      flags: Object.entries(command.flags).map(([name, flag]) => ({
        name,
        short: flag.short,
        help: firstSentence(flag.help),
        value: valueOf(flag),
      })),
    };
  });
  return [...offers, {
    name: "help",
    summary: "Explain a command",
    verbs: [],
    operand: { kind: "choices", choices: names },
    flags: [],
  }];
}

/** The usage line says it: `list | revoke NAME [flags]`, or `HOST:PORT`. */
function operandsOf(
  { name, operands }: ListedCommand,
  names: readonly string[],
): Pick<CommandWords, "verbs" | "operand"> {
  const ways = operands.replace(/\s*\[flags[^\]]*\]/g, "")
    // `[a | b NAME]`: none of them need be there.
    .replace(/^\[([^\]]* \| [^\]]*)\]$/, "$1").split(" | ")
    .map((way) => way.trim().split(" "));
  // `bash|zsh|fish` alone are words to choose from; elsewhere they are verbs.
  const isChoice = ways.length === 1 && ways[0]!.length === 1 &&
    ways[0]![0]!.includes("|");
  const verbs = isChoice
    ? []
    : ways.flatMap(([words, operand = ""]) =>
      words!.split("|").filter((word) => /^[a-z][a-z-]*$/.test(word))
        .map((verb) => ({
          name: verb,
          operand: operandOf(name, operand, names),
        }))
    );
  const [[first = ""] = []] = ways;
  return {
    verbs,
    operand: verbs.length > 0 ? NONE : operandOf(name, first, names),
  };
}

/** @param word As in the usage line. */
function operandOf(
  command: string,
  word: string,
  names: readonly string[],
): WordOffer {
  const plain = word.replace(/^\[|\]?…?$/g, "").replace(/^NAMESPACE\/\]/, "");
  if (plain === "" || plain.startsWith("-")) return NONE;
  if (/^[a-z]+(?:\|[a-z]+)+$/.test(plain)) {
    return { kind: "choices", choices: plain.split("|") };
  }
  if (plain === "COMMAND") return { kind: "choices", choices: names };
  if (plain === "CODE") {
    return { kind: "choices", choices: Object.keys(CODES) };
  }
  if (plain === "FILE") return { kind: "files" };
  if (
    plain === "NODE" ||
    plain === "NAME" && (command === "node" || command === "doctor")
  ) {
    return { kind: "nodes" };
  }
  if (plain === "ID" && command === "conn") return { kind: "connections" };
  if (plain === "SERVICE") return { kind: "services" };
  return ANYTHING;
}

function valueOf(flag: Flag<unknown>): WordOffer {
  if (flag.kind === "boolean") return NONE;
  if (flag.offers !== undefined) return { kind: flag.offers };
  if (flag.choices !== undefined) {
    const choices = flag.choices.filter((choice) => choice !== "");
    return { kind: "choices", choices };
  }
  if (/^(?:FILE|PATH)$/.test(flag.placeholder)) return { kind: "files" };
  if (/^DIR(?:ECTORY)?$/.test(flag.placeholder)) return { kind: "directories" };
  return ANYTHING;
}

function firstSentence(help: string): string {
  const [sentence = ""] = help.split(/(?<=\.)\s|;|:\s/);
  const text = sentence.replace(/\.$/, "");
  return text.length <= HELP_LENGTH_MAX
    ? text
    : `${text.slice(0, HELP_LENGTH_MAX - 1).trimEnd()}…`;
}
